/** Pro costs this much a month with one member, and as much again for each further one. */
export const pricePerMember = 100
const maxMembers = 100

/** What is wrong with a member count as typed, or null. */
export function countProblem(
  text: string,
): 'countRequired' | 'countInvalid' | 'countTooFew' | 'countTooMany' | null {
  const typed = text.trim()
  if (typed === '') return 'countRequired'
  if (!/^-?\d+$/.test(typed)) return 'countInvalid'
  const count = Number(typed)
  if (count < 1) return 'countTooFew'
  return count > maxMembers ? 'countTooMany' : null
}

/** The monthly price in USD: the base, the part for further members, and both together. */
export function monthlyCost(members: number): {
  base: number
  extraMembers: number
  extra: number
  total: number
} {
  const extraMembers = Math.max(0, members - 1)
  const extra = extraMembers * pricePerMember
  return { base: pricePerMember, extraMembers, extra, total: pricePerMember + extra }
}
