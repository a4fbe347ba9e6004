import type { Member, Team } from '@/api/types'

const proCapacity = 5
const hobbyCapacity = 1

/** How many members a team may have: what was paid for, else what the plan gives. */
export function capacityOf(team: Pick<Team, 'plan' | 'max_members'>): number {
  if (team.max_members && team.max_members > 0) return team.max_members
  return team.plan === 'pro' ? proCapacity : hobbyCapacity
}

/** Why a member cannot be removed by this reader, or null. The first reason that holds is the one shown. */
export function removalBlock(
  team: Pick<Team, 'is_personal' | 'role'>,
  members: readonly Member[],
  member: Member,
  userId: string,
): 'personal' | 'last' | 'self' | 'admins' | null {
  if (team.is_personal) return 'personal'
  if (members.length <= 1) return 'last'
  if (member.user_id === userId) return member.role === 'admin' ? 'self' : null
  return team.role === 'admin' ? null : 'admins'
}

/** Whether members and pending invitations take every seat. */
export function isFull(capacity: number, members: number, invitations: number): boolean {
  return members + invitations >= capacity
}

/** The members with another role for one of them; nobody else's moves. */
export function withRole(
  members: readonly Member[] | undefined,
  id: string,
  role: Member['role'],
): Member[] | undefined {
  return members?.map((member) => (member.id === id ? { ...member, role } : member))
}
