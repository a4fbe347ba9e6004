import type { QueryClient } from '@tanstack/react-query'
import { keysQuery } from '@/features/keys/queries'
import { resourcesQuery } from '@/features/offers/queries'
import { podsQuery } from '@/features/pods/queries'
import { membersQuery } from '@/features/team/queries'
import { volumesQuery } from '@/features/volumes/queries'

/** Asks for every list of a team that is not fresh. Loaded when they are due: a page loads what it shows first. */
export function prefetchLists(client: QueryClient, teamId: string): void {
  void client.prefetchQuery(podsQuery(teamId))
  void client.prefetchQuery(volumesQuery(teamId))
  void client.prefetchQuery(keysQuery(teamId))
  void client.prefetchQuery(membersQuery(teamId))
  void client.prefetchQuery(resourcesQuery(teamId))
}
