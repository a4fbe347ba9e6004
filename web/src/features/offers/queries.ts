import { queryOptions, useQuery } from '@tanstack/react-query'
import { call } from '@/api/client'
import { useSession, useTeam } from '@/features/session/queries'

/** What can be rented now: with a team at that team's prices, without one (visitors) at list prices. */
export const resourcesQuery = (teamId: string | null) =>
  queryOptions({
    queryKey: ['resources', teamId],
    queryFn: async () => call('get', '/resources', { query: teamId ? { team_id: teamId } : {} }),
    staleTime: 5 * 60_000,
  })

/** The offers for the reader: nothing is asked before it is known who that is. */
export function useResources() {
  const session = useSession()
  const { team, status } = useTeam()
  return useQuery({
    ...resourcesQuery(team?.id ?? null),
    enabled: session.status === 'none' || (session.status === 'in' && status !== 'loading'),
  })
}
