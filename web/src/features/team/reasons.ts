import type { Team } from '@/api/types'
import { copy } from '@/copy/en'

/** Why the reader may not manage a team, or undefined; visitors have none. */
export function manageReason(team: Pick<Team, 'role'> | null): string | undefined {
  if (!team) return copy.teams.signInToManage
  return team.role === 'admin' ? undefined : copy.app.adminsOnly
}
