import { queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { call } from '@/api/client'
import { removal } from '@/api/optimistic'
import { useTeam } from '@/features/session/queries'
import { noticesKey } from '@/features/wallet/queries'

/** What a team is told about its money; a payment or a sweep may change it at any time. */
const noticesQuery = (teamId: string) =>
  queryOptions({
    queryKey: noticesKey(teamId),
    queryFn: async () => call('get', '/notices', { query: { team_id: teamId } }),
    staleTime: 20_000,
    refetchInterval: 30_000,
    refetchOnWindowFocus: true,
  })

/** The notices of the team on stage, once a page has asked for its own lists. */
export function useNotices(enabled: boolean) {
  const { team } = useTeam()
  return useQuery({ ...noticesQuery(team?.id ?? ''), enabled: enabled && team !== null })
}

/** Hides a notice from the reader, for good. It comes back when the server did not take that. */
export function useDismiss() {
  const client = useQueryClient()
  const teamId = useTeam().team?.id ?? ''
  return useMutation(
    removal<{ id: string }>(
      client,
      noticesKey(teamId),
      async ({ id }) => {
        await call('delete', '/notices/{id}', { path: { id }, query: { team_id: teamId } })
      },
      () => {},
    ),
  )
}
