import { asRecord } from '@/lib/storage'

/** How long the upgrade box stays away once it is closed, in milliseconds. */
export const closedFor = 18_000_000

/**
 * For how many milliseconds more the upgrade box stays away; 0 when it shows. A damaged note counts as none, and
 * so does one from the future, which a clock set back would otherwise keep for long.
 */
export function awayFor(stored: unknown, now: number): number {
  const at = asRecord(stored)?.closedAt
  if (typeof at !== 'number' || at > now) return 0
  return Math.max(0, at + closedFor - now)
}
