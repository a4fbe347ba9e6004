import { useQueryClient } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { copy } from '@/copy/en'
import { selectTeam, userInfoQuery, useSession, useTeam } from '@/features/session/queries'
import { autoTopUpKey, balanceQuery, transactionsQuery } from '@/features/wallet/queries'
import { wait } from '@/lib/poll'
import { newestCredit } from './model'
import { creditOnLeaving } from './queries'

/** What the page says about the way the reader came: from a payment, with a new team, or past a limit. */
export interface ReturnMessage {
  readonly tone: 'success' | 'danger' | 'info'
  readonly text: string
  readonly link?: { readonly to: '/create-team' | '/create'; readonly label: string }
}

const creditPolls = 20
const creditPause = 3000
const teamPolls = 15
const teamPause = 2000

/** Reads team_id, subscribe, checkout and from off the address, acts on them, and takes them out of it. */
export function useReturn(): { switching: boolean; message: ReturnMessage | null } {
  const [message, setMessage] = useState<ReturnMessage | null>(null)
  const switching = useNewTeam(setMessage)
  useCheckout(setMessage)
  return { switching, message }
}

type Say = (message: ReturnMessage | null) => void

/** Takes parameters out of the address; all others stay as they are by then. */
function useWithout(): (...names: readonly string[]) => void {
  const navigate = useNavigate()
  return (...names) => {
    const search = (now: Readonly<Record<string, string | undefined>>) => {
      const rest: Record<string, string> = {}
      for (const [name, value] of Object.entries(now)) {
        if (value !== undefined && !names.includes(name)) rest[name] = value
      }
      return rest
    }
    void navigate({ to: '/billing', search, replace: true, resetScroll: false })
  }
}

/** ?team_id=&subscribe=: goes over to that team; a team just paid for may take a moment to be there. */
function useNewTeam(say: Say): boolean {
  const client = useQueryClient()
  const without = useWithout()
  const { team_id: wanted, subscribe } = useSearch({ from: '/shell/billing' })
  const session = useSession()
  const userId = session.status === 'in' ? session.userId : null
  // biome-ignore lint/correctness/useExhaustiveDependencies: the address changes as a result of this effect.
  useEffect(() => {
    // A visitor signs in first: the way back is this address, parameters and all.
    if (userId === null || (wanted === undefined && subscribe === undefined)) return
    const abort = new AbortController()
    const go = async () => {
      for (let attempt = 0; wanted !== undefined && attempt < teamPolls; attempt += 1) {
        const fresh = { ...userInfoQuery(userId), staleTime: attempt === 0 ? 60_000 : 0 }
        const info = await client.fetchQuery(fresh).catch(() => null)
        if (abort.signal.aborted) return
        if (info?.teams.some((team) => team.id === wanted)) {
          selectTeam(wanted)
          if (subscribe !== undefined) say({ tone: 'success', text: copy.billing.subscribed })
          without('team_id', 'subscribe')
          return
        }
        await wait(teamPause, abort.signal)
        if (abort.signal.aborted) return
      }
      if (wanted !== undefined) say({ tone: 'danger', text: copy.billing.switchFailed })
      without('team_id', 'subscribe')
    }
    void go()
    return () => abort.abort()
  }, [userId, wanted])
  return userId !== null && wanted !== undefined
}

/** ?checkout=: says how the payment went, and reads the wallet until the credit is there. */
function useCheckout(say: Say): void {
  const client = useQueryClient()
  const without = useWithout()
  const search = useSearch({ from: '/shell/billing' })
  const { team } = useTeam()
  const [outcome] = useState(search.checkout)
  const [from] = useState(search.from)
  const teamId = team?.id
  // biome-ignore lint/correctness/useExhaustiveDependencies: once, for what the address said on arriving.
  useEffect(() => {
    if (from === 'storage') {
      say({
        tone: 'info',
        text: copy.billing.volumeLimit,
        link: { to: '/create-team', label: copy.billing.volumeLimitLink },
      })
    }
    if (outcome === 'cancel') say({ tone: 'info', text: copy.billing.checkoutCancelled })
    if (outcome !== undefined || from !== undefined) without('checkout', 'from')
  }, [])
  useEffect(() => {
    if (outcome !== 'success' || teamId === undefined) return
    say({ tone: 'success', text: copy.billing.crediting })
    const abort = new AbortController()
    const { queryKey } = transactionsQuery(teamId)
    const poll = async () => {
      const before = creditOnLeaving(teamId)
      let known = before
      for (let attempt = 0; attempt < creditPolls; attempt += 1) {
        await Promise.all([
          client.refetchQueries({ queryKey: balanceQuery(teamId).queryKey }),
          client.refetchQueries({ queryKey }),
        ])
        if (abort.signal.aborted) return
        const rows = client.getQueryData(queryKey)
        const newest = rows ? newestCredit(rows) : null
        if (known !== null && newest !== null && newest !== known) {
          const link = { to: '/create', label: copy.billing.creditedLink } as const
          say({ tone: 'success', text: copy.billing.credited, link })
          // A card that was saved with the payment is read just after it.
          await wait(creditPause, abort.signal)
          void client.invalidateQueries({ queryKey: autoTopUpKey(teamId) })
          return
        }
        known ??= newest
        await wait(creditPause, abort.signal)
        if (abort.signal.aborted) return
      }
      // Without a record of the leaving the credit may have been there from the first reading on.
      if (before !== null) say({ tone: 'info', text: copy.billing.creditLate })
    }
    void poll()
    return () => abort.abort()
  }, [client, outcome, teamId, say])
}
