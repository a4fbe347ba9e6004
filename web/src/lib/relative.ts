// Counted, not named: 47 hours ago is one whole day, but not yesterday.
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'always' })
const now = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto' })

const steps = [
  ['minute', 60],
  ['hour', 60 * 60],
  ['day', 24 * 60 * 60],
  ['month', 30 * 24 * 60 * 60],
  ['year', 365 * 24 * 60 * 60],
] as const

/** How far an API instant is from now, in its largest whole unit: '3 hours ago', '1 day ago', 'now'. */
export function formatRelative(instant: string, at: number): string {
  const seconds = (Date.parse(instant) - at) / 1000
  const step = steps.findLast(([, size]) => Math.abs(seconds) >= size)
  return step ? relative.format(Math.trunc(seconds / step[1]), step[0]) : now.format(0, 'second')
}
