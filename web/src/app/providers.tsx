import { QueryClientProvider } from '@tanstack/react-query'
import { type ReactNode, useEffect, useSyncExternalStore } from 'react'
import { type SessionState, sessionState, watchSession } from '@/api/session'
import { SessionContext, TeamContext, useTeamState } from '@/features/session/queries'
import { queryClient } from './query-client'

const prerendered: SessionState = { status: 'none', problem: null }

/** Everything a page may ask for: the session, the team on stage, the cache. */
export function Providers({ children }: { children: ReactNode }) {
  return (
    <QueryClientProvider client={queryClient}>
      <SessionProvider>{children}</SessionProvider>
    </QueryClientProvider>
  )
}

/** Blank until it is known whether there is a session. */
function SessionProvider({ children }: { children: ReactNode }) {
  const session = useSyncExternalStore(watchSession, sessionState, () => prerendered)
  useEffect(() => {
    // Ends the blank page that the boot script asked for.
    if (session.status !== 'loading') document.documentElement.dataset.auth = session.status
  }, [session.status])
  if (session.status === 'loading') return null
  return (
    <SessionContext value={session}>
      <TeamProvider>{children}</TeamProvider>
    </SessionContext>
  )
}

function TeamProvider({ children }: { children: ReactNode }) {
  return <TeamContext value={useTeamState()}>{children}</TeamContext>
}
