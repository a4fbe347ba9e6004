import { useQueryClient } from '@tanstack/react-query'
import { useLocation } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { useTeam } from '@/features/session/queries'

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
      void import('./secondary-lists').then(({ prefetchLists }) => prefetchLists(client, teamId))
    }, delay)
    return () => clearTimeout(timer)
  }, [client, teamId, pathname])
  return come
}
