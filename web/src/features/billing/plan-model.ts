import type { Subscription } from '@/api/types'

const mostSeats = 100

/** What is wrong with a number of seats as typed, or null. */
export function seatsProblem(
  text: string,
  plan: Pick<Subscription, 'member_count' | 'seats_taken'>,
): 'number' | 'taken' | 'most' | 'same' | null {
  const typed = text.trim()
  if (!/^\d+$/.test(typed)) return 'number'
  const seats = Number(typed)
  if (seats > mostSeats) return 'most'
  if (seats < Math.max(1, plan.seats_taken)) return 'taken'
  return seats === plan.member_count ? 'same' : null
}

/** The number of seats one step away from what is typed, or null where no step is left. */
export function stepSeats(
  text: string,
  by: 1 | -1,
  plan: Pick<Subscription, 'member_count' | 'seats_taken'>,
): string | null {
  const typed = /^\d+$/.test(text.trim()) ? Number(text) : plan.member_count
  const next = typed + by
  return next > mostSeats || next < Math.max(1, plan.seats_taken) ? null : String(next)
}

/** What is wrong with a spend limit as typed, or null; a plan without a limit (0) allows any. */
export function limitProblem(amount: number | null, planLimit: number): 'invalid' | 'tooHigh' | null {
  if (amount === null) return 'invalid'
  return planLimit > 0 && amount > planLimit ? 'tooHigh' : null
}
