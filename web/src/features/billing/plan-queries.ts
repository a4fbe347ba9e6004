import { queryOptions, useMutation, useQueryClient } from '@tanstack/react-query'
import { call } from '@/api/client'
import { ApiError, detailOf } from '@/api/error'
import type { Subscription } from '@/api/types'
import { copy } from '@/copy/en'
import { balanceQuery, noticesKey } from '@/features/wallet/queries'
import { formatUsd } from '@/lib/money'
import { alertToast, toast } from '@/ui/toast'

const noSubscription = 409

/** What a team pays each month; null for one that pays nothing. */
export const subscriptionQuery = (teamId: string) =>
  queryOptions({
    queryKey: ['subscription', teamId],
    queryFn: async (): Promise<Subscription | null> => {
      try {
        return await call('get', '/teams/{id}/subscription', { path: { id: teamId } })
      } catch (error) {
        if (error instanceof ApiError && error.status === noSubscription) return null
        throw error
      }
    },
    staleTime: 60_000,
  })

/** Reads anew what a change of the subscription changes: it, the team with its seats, and what the team is told. */
function useSubscriptionChanged(teamId: string): () => Promise<unknown> {
  const client = useQueryClient()
  return () =>
    Promise.all([
      client.invalidateQueries({ queryKey: subscriptionQuery(teamId).queryKey }),
      client.invalidateQueries({ queryKey: ['user-info'] }),
      client.invalidateQueries({ queryKey: noticesKey(teamId) }),
    ])
}

/** Pays for another number of seats. What was refused may have been half done: it is read all the same. */
export function useSetSeats(teamId: string) {
  const changed = useSubscriptionChanged(teamId)
  return useMutation({
    mutationFn: async (seats: number) =>
      call('patch', '/teams/{id}/subscription', { path: { id: teamId }, body: { member_count: seats } }),
    onSuccess: (_team, seats) => toast(copy.plan.seatsDone(seats)),
    onSettled: changed,
  })
}

/** Lets the subscription end with the month that is paid for. */
export function useEndSubscription(teamId: string) {
  const changed = useSubscriptionChanged(teamId)
  return useMutation({
    mutationFn: async (_day: string | null) =>
      call('delete', '/teams/{id}/subscription', { path: { id: teamId } }),
    onSuccess: (_done, day) => toast(copy.plan.endDone(day)),
    onSettled: changed,
  })
}

/** Takes the end of the subscription back. */
export function useResumeSubscription(teamId: string) {
  const changed = useSubscriptionChanged(teamId)
  return useMutation({
    mutationFn: async () => call('post', '/teams/{id}/subscription/resume', { path: { id: teamId } }),
    onSuccess: () => toast(copy.plan.resumeDone),
    onError: (error) => alertToast(copy.plan.resumeFailed, detailOf(error, '')),
    onSettled: changed,
  })
}

/** Leaves for the payment provider's page with the team's cards and invoices. */
export function useOpenPortal(teamId: string) {
  return useMutation({
    mutationFn: async () => call('post', '/teams/{id}/billing-portal', { path: { id: teamId } }),
    onSuccess: ({ portal_url }) => location.assign(portal_url),
    onError: (error) => alertToast(copy.plan.portalFailed, detailOf(error, '')),
  })
}

/** Gives the team a monthly spend limit; the plan's own amount removes a lower one. */
export function useSetLimit(teamId: string) {
  const client = useQueryClient()
  return useMutation({
    mutationFn: async (limit: number) =>
      call('patch', '/teams/{id}', { path: { id: teamId }, body: { spend_limit: limit } }),
    onSuccess: async (_team, limit) => {
      await client.invalidateQueries({ queryKey: balanceQuery(teamId).queryKey })
      void client.invalidateQueries({ queryKey: noticesKey(teamId) })
      toast(copy.plan.limitDone(formatUsd(limit)))
    },
  })
}
