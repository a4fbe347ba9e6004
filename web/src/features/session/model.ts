import type { Team, UserInfo } from '@/api/types'

/** What somebody may do, and if not, why: the reason becomes the title of the disabled button. */
export type Access = { readonly can: true } | { readonly can: false; readonly reason: string }

/** The team to act for: the chosen one if it is the user's, else the personal one, else the first, else none. */
export function chooseTeam(info: UserInfo, chosenId: string | null): Team | null {
  const personal: { id: string; name: string } | null = info.personal_team ?? null
  return (
    info.teams.find((team) => team.id === chosenId) ??
    info.teams.find((team) => team.is_personal || team.id === personal?.id) ??
    info.teams[0] ??
    (personal ? asTeam(personal) : null)
  )
}

/** Enterprise is never a badge, and a plan we do not know has the limits of the free one. */
export function isPro(team: Pick<Team, 'plan'> | null): boolean {
  return team?.plan === 'pro'
}

/** A personal team that the list of teams does not name. */
function asTeam({ id, name }: { id: string; name: string }): Team {
  return { id, name, description: '', plan: 'hobby', is_personal: true, role: 'admin', created_at: '' }
}
