import { useQueryClient } from '@tanstack/react-query'
import { useLocation } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { keysQuery } from '@/features/keys/queries'
import { resourcesQuery } from '@/features/offers/queries'
import { podsQuery } from '@/features/pods/queries'
import { useTeam } from '@/features/session/queries'
import { membersQuery } from '@/features/team/queries'
import { volumesQuery } from '@/features/volumes/queries'

const delay = 100

/**
 * A page asks for its own lists; all others follow about 100 ms later, so that the next page has them.
 * Returns whether that moment has come.
 */
export function useSecondaryLists(): boolean {
  const client = useQueryClient()
  const { team } = useTeam()
  const { pathname } = useLocation()
  const [come, setCome] = useState(false)
  const teamId = team?.id
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new page starts the delay anew.
  useEffect(() => {
    if (!teamId) return
    const timer = setTimeout(() => {
      setCome(true)
      void client.prefetchQuery(podsQuery(teamId))
      void client.prefetchQuery(volumesQuery(teamId))
      void client.prefetchQuery(keysQuery(teamId))
      void client.prefetchQuery(membersQuery(teamId))
      void client.prefetchQuery(resourcesQuery(teamId))
    }, delay)
    return () => clearTimeout(timer)
  }, [client, teamId, pathname])
  return come
}
