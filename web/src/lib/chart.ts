/** The end of a scale that holds the most: the next 1, 2 or 5 times a power of ten; 1 for nothing at all. */
export function scaleEnd(most: number): number {
  if (most <= 0) return 1
  const power = 10 ** Math.floor(Math.log10(most))
  return ([1, 2, 5].find((step) => step * power >= most * (1 - 1e-9)) ?? 10) * power
}

const dayNames = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric', timeZone: 'UTC' })

/** A UTC day as a chart names it, in the reader's language: '2026-11-21' → 'Nov 21'. */
export function dayName(day: string): string {
  return dayNames.format(new Date(`${day}T00:00:00Z`))
}
