import { queryOptions, useQuery } from '@tanstack/react-query'
import { createContext, useContext, useSyncExternalStore } from 'react'
import { call } from '@/api/client'
import type { SessionState } from '@/api/session'
import type { Team, UserInfo } from '@/api/types'
import { copy } from '@/copy/en'
import { readCookie, writeCookie } from '@/lib/cookie'
import { createStore } from '@/lib/store'
import { type Access, chooseTeam } from './model'

const teamCookie = 'homeport-team'
const teamCookieDays = 30

/** Who the user is and which teams they are in. */
export const userInfoQuery = (userId: string) =>
  queryOptions({
    queryKey: ['user-info', userId],
    queryFn: async () => call('get', '/user/info', {}),
    staleTime: 5 * 60_000,
    // Nothing else can load before this has: it keeps trying by itself.
    refetchInterval: (query) => (query.state.status === 'error' ? 5000 : false),
  })

/** The session state; provided by the app. */
export const SessionContext = createContext<SessionState | null>(null)

/** The session state. Throws outside its provider. */
export function useSession(): SessionState {
  const session = useContext(SessionContext)
  if (!session) throw new Error('useSession is used outside its provider')
  return session
}

/** The team on stage and everything that depends on it. */
export interface TeamState {
  /** `loading` until /user/info has answered; `none` for visitors and for users without any team. */
  readonly status: 'loading' | 'none' | 'ready'
  readonly team: Team | null
  readonly info: UserInfo | null
}

/** The team state; provided by the app. */
export const TeamContext = createContext<TeamState | null>(null)

/** The team on stage. Throws outside its provider. */
export function useTeam(): TeamState {
  const team = useContext(TeamContext)
  if (!team) throw new Error('useTeam is used outside its provider')
  return team
}

const chosenTeam = createStore<string | null>(typeof document === 'undefined' ? null : readCookie(teamCookie))

/** Works out the team state from the session, /user/info and the saved choice. For the app's provider only. */
export function useTeamState(): TeamState {
  const session = useSession()
  const chosen = useSyncExternalStore(chosenTeam.watch, chosenTeam.get, () => null)
  const signedIn = session.status === 'in'
  const { data: info } = useQuery({
    ...userInfoQuery(signedIn ? session.userId : ''),
    enabled: signedIn,
  })
  if (!signedIn) return { status: 'none', team: null, info: null }
  if (!info) return { status: 'loading', team: null, info: null }
  const team = chooseTeam(info, chosen)
  return { status: team ? 'ready' : 'none', team, info }
}

/** Saves the choice of a team and acts for it from now on. */
export function selectTeam(id: string): void {
  writeCookie(teamCookie, id, teamCookieDays)
  chosenTeam.set(id)
}

/** Saves the choice for the next load of the page only. */
export function saveTeamChoice(id: string): void {
  writeCookie(teamCookie, id, teamCookieDays)
}

/** Forgets the choice: the personal team follows. */
export function forgetTeam(): void {
  writeCookie(teamCookie, '', 0)
  chosenTeam.set(null)
}

/** Whether the reader may create things; visitors hear the given reason. */
export function useCreateAccess(visitorReason: string): Access {
  const session = useSession()
  const { team } = useTeam()
  if (session.status !== 'in') return { can: false, reason: visitorReason }
  if (team?.role === 'viewer') return { can: false, reason: copy.app.viewersCannot }
  return { can: true }
}

/** Whether the reader may delete a thing of the team: its creator and admins may. */
export function useDeleteAccess(visitorReason: string): (createdBy: string) => Access {
  const session = useSession()
  const { team } = useTeam()
  return (createdBy) => {
    if (session.status !== 'in') return { can: false, reason: visitorReason }
    if (team?.role === 'admin' || createdBy === session.userId) return { can: true }
    return { can: false, reason: copy.app.notYours }
  }
}
