import { queryOptions, useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { call } from '@/api/client'
import { detailOf } from '@/api/error'
import type { AutoTopUp } from '@/api/types'
import { copy } from '@/copy/en'
import { autoTopUpKey, noticesKey } from '@/features/wallet/queries'
import { onceKeys } from '@/lib/once'
import { wait } from '@/lib/poll'
import { asRecord, readStored, writeStored } from '@/lib/storage'
import { alertToast, toast } from '@/ui/toast'

const polls = 15
const pause = 2000
const whileCharging = 5000
const leaving = 'card'
/** For messages that the whole page comes before. */
const readingTime = 10_000

/** What the team agreed on, and its card; admins only. */
export const autoTopUpQuery = (teamId: string) =>
  queryOptions({
    queryKey: autoTopUpKey(teamId),
    queryFn: async () => call('get', '/wallet/auto-topup', { query: { team_id: teamId } }),
    staleTime: 30_000,
    refetchInterval: (query) => (query.state.data?.state === 'charging' ? whileCharging : false),
  })

/** The team's card, where the reader saved it and is no admin any more. */
export const myCardQuery = (teamId: string) =>
  queryOptions({
    queryKey: ['my-card', teamId],
    queryFn: async () => call('get', '/wallet/my-card', { query: { team_id: teamId } }),
    staleTime: 30_000,
  })

/** Agrees on automatic top-ups, or turns them off. */
export function useSetAutoTopUp(teamId: string) {
  const client = useQueryClient()
  return useMutation({
    mutationFn: async (wanted: {
      enabled: boolean
      threshold: number
      amount: number
      monthly_cap: number
    }) => call('put', '/wallet/auto-topup', { query: { team_id: teamId }, body: wanted }),
    onSuccess: async (now) => {
      const { queryKey } = autoTopUpQuery(teamId)
      // A reading that was under way would tell what was before.
      await client.cancelQueries({ queryKey })
      client.setQueryData(queryKey, now)
      void client.invalidateQueries({ queryKey: noticesKey(teamId) })
      toast(now.enabled ? copy.topUp.done.on : copy.topUp.done.off)
    },
  })
}

/** Leaves for the page on which a card is saved. */
export function useSaveCard(teamId: string) {
  const client = useQueryClient()
  const [keys] = useState(onceKeys)
  return useMutation({
    mutationFn: async () =>
      call('post', '/wallet/card', { query: { team_id: teamId } }, { key: keys.of(teamId) }),
    onSuccess: ({ checkout_url }) => {
      keys.forget()
      const known = client.getQueryData(autoTopUpQuery(teamId).queryKey)
      writeStored(leaving, { team: teamId, saved: known?.card?.saved_at ?? '' })
      location.assign(checkout_url)
    },
    onError: (error) => alertToast(copy.topUp.saveFailed, detailOf(error, '')),
  })
}

/** Forgets the card, which turns automatic top-ups off. */
export function useRemoveCard(teamId: string) {
  const client = useQueryClient()
  return useMutation({
    mutationFn: async () => call('delete', '/wallet/card', { query: { team_id: teamId } }),
    onSuccess: () => toast(copy.topUp.removed),
    onError: (error) => alertToast(copy.topUp.removeFailed, detailOf(error, '')),
    onSettled: () =>
      Promise.all([
        client.invalidateQueries({ queryKey: autoTopUpQuery(teamId).queryKey }),
        client.invalidateQueries({ queryKey: myCardQuery(teamId).queryKey }),
        client.invalidateQueries({ queryKey: noticesKey(teamId) }),
      ]),
  })
}

/** ?card=: on the way back from saving a card, waits until it is there and hands it on. */
export function useCardReturn(teamId: string, onSaved: (now: AutoTopUp) => void): void {
  const client = useQueryClient()
  const navigate = useNavigate()
  const { card: outcome, team_id: switching } = useSearch({ from: '/shell/billing' })
  // biome-ignore lint/correctness/useExhaustiveDependencies: the address changes as a result of this effect.
  useEffect(() => {
    // The team of the address is put on stage first.
    if (outcome === undefined || switching !== undefined) return
    const forget = () => void navigate({ to: '/billing', search: {}, hash: 'plan', replace: true })
    if (outcome !== 'saved') {
      toast(copy.topUp.cancelled, readingTime)
      forget()
      return
    }
    const abort = new AbortController()
    const poll = async () => {
      const left = asRecord(readStored(leaving))
      const before = left?.team === teamId ? left.saved : ''
      for (let attempt = 0; attempt < polls; attempt += 1) {
        const now = await client
          .fetchQuery({ ...autoTopUpQuery(teamId), staleTime: 0 })
          .catch(() => undefined)
        if (abort.signal.aborted) return
        if (now?.card && now.card.saved_at !== before) {
          toast(copy.topUp.saved)
          onSaved(now)
          forget()
          return
        }
        await wait(pause, abort.signal)
        if (abort.signal.aborted) return
      }
      toast(copy.topUp.late, readingTime)
      forget()
    }
    void poll()
    return () => abort.abort()
  }, [outcome, switching, teamId])
}
