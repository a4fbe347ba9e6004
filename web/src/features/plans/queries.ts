import { queryOptions, useMutation } from '@tanstack/react-query'
import { call } from '@/api/client'
import { loadConfig } from '@/api/config'

/** What the operator configured; it does not change while the page is open. */
export const configQuery = queryOptions({
  queryKey: ['config'],
  queryFn: loadConfig,
  staleTime: Number.POSITIVE_INFINITY,
})

/** Starts the subscription of a new team and leaves for the payment page. */
export function useTeamCheckout() {
  return useMutation({
    mutationFn: async (team: { name: string; description: string; member_count: number }) =>
      call('post', '/teams/checkout', { body: team }, { credentials: 'include' }),
    onSuccess: ({ checkout_url }) => location.assign(checkout_url),
  })
}
