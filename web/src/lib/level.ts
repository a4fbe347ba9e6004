/** A share of a whole in quarters: 1 up to 25 %, 2 up to 50 %, 3 up to 75 %, 4 above. Boundaries belong below. */
export type Level = 1 | 2 | 3 | 4

/** The quarter that a value of a maximum falls into. */
export function levelOf(value: number, max: number): Level {
  const share = value / max
  if (share <= 0.25) return 1
  if (share <= 0.5) return 2
  if (share <= 0.75) return 3
  return 4
}

/** The part of a maximum in percent, between 0 and 100. */
export function percentOf(value: number, max: number): number {
  return Math.min(100, Math.max(0, (value / max) * 100))
}
