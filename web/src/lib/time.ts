const minute = 60
const hour = 60 * minute
const day = 24 * hour
const daysPerMonth = 30

/** How long something has been up, in the two or three largest units: '1d 2h 3m', '1h 1m 1s', '1m 1s', '9s'. */
export function formatUptime(milliseconds: number): string {
  const total = Math.max(0, Math.floor(milliseconds / 1000))
  const d = Math.floor(total / day)
  const h = Math.floor((total % day) / hour)
  const m = Math.floor((total % hour) / minute)
  const s = total % minute
  if (d > 0) return `${d}d ${h}h ${m}m`
  if (h > 0) return `${h}h ${m}m ${s}s`
  if (m > 0) return `${m}m ${s}s`
  return `${s}s`
}

/** How long ago something was, in its largest unit: 'just now' within the first minute, '5 min ago', '3 h ago', '2 d ago'. */
export function formatAgo(milliseconds: number): string {
  const minutes = Math.floor(milliseconds / (minute * 1000))
  if (minutes < 1) return 'just now'
  if (minutes < 60) return `${minutes} min ago`
  const hours = Math.floor(minutes / 60)
  return hours < 24 ? `${hours} h ago` : `${Math.floor(hours / 24)} d ago`
}

/**
 * How long a balance lasts at a rate per hour, floored to the minute: '3d 9h left', '3h 20m left', '30m left',
 * '1mo 11d' beyond 30 days (a month is 30 days), '<0h' when nothing is left, null when nothing is spent.
 */
export function formatTimeLeft(balance: number, spendingPerHour: number): string | null {
  if (spendingPerHour <= 0) return null
  if (balance <= 0) return '<0h'
  // The small addend undoes the binary fraction of 10 / 3 * 60 = 199.999…
  const minutes = Math.floor((balance / spendingPerHour) * 60 + 1e-6)
  const days = Math.floor(minutes / (24 * 60))
  const hours = Math.floor(minutes / 60) % 24
  if (minutes > daysPerMonth * 24 * 60) return `${Math.floor(days / daysPerMonth)}mo ${days % daysPerMonth}d`
  if (days > 0) return `${days}d ${hours}h left`
  if (hours > 0) return `${hours}h ${minutes % 60}m left`
  return `${minutes}m left`
}

const dateTime = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' })

/** An API instant in the reader's own locale and zone. */
export function formatDateTime(instant: string | number): string {
  return dateTime.format(new Date(instant))
}

/** Newest first by created_at; equal instants keep their order. */
export function newestFirst<T extends { created_at: string }>(items: readonly T[]): T[] {
  return [...items].sort((a, b) => Date.parse(b.created_at) - Date.parse(a.created_at))
}
