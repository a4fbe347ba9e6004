import { queryOptions, useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { call } from '@/api/client'
import { loadConfig } from '@/api/config'
import { onceKeys } from '@/lib/once'

/** What the operator configured; it does not change while the page is open. */
export const configQuery = queryOptions({
  queryKey: ['config'],
  queryFn: loadConfig,
  staleTime: Number.POSITIVE_INFINITY,
})

/** Starts the subscription of a new team and leaves for the payment page. */
export function useTeamCheckout() {
  const [keys] = useState(onceKeys)
  return useMutation({
    mutationFn: async (team: { name: string; description: string; member_count: number }) =>
      call('post', '/teams/checkout', { body: team }, { credentials: 'include', key: keys.of(team) }),
    onSuccess: ({ checkout_url }) => {
      keys.forget()
      location.assign(checkout_url)
    },
  })
}
