import type { OperatorMargin, OperatorProvider } from '@/api/types'
import { copy } from '@/copy/en'
import { lazy } from '@/lib/lazy'
import type { Tone } from '@/ui/badge'

const texts = copy.operator

/** The colour of a cloud's state. */
export const healthTones: Record<OperatorProvider['health'], Tone> = {
  works: 'ready',
  trial: 'warn',
  broken: 'danger',
  no_funds: 'danger',
  stale: 'danger',
  silent: 'warn',
  off: 'quiet',
}

/** How many offers of a cloud users see: those of its catalogue, unless they are hidden. */
export function offersOnSale({ health, offers }: Pick<OperatorProvider, 'health' | 'offers'>): number {
  return health === 'works' || health === 'trial' ? offers : 0
}

/** The colour of a score of 100. */
export function scoreTone(score: number): Tone {
  if (score >= 90) return 'ready'
  return score >= 70 ? 'warn' : 'danger'
}

const whole = lazy(() => new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 }))

/** A count: 12345 → '12,345'. */
export function countText(count: number): string {
  return whole().format(count)
}

const cents = lazy(() => new Intl.NumberFormat('en-US', { style: 'currency', currency: 'USD' }))
const millionths = lazy(
  () =>
    new Intl.NumberFormat('en-US', {
      style: 'currency',
      currency: 'USD',
      minimumFractionDigits: 2,
      maximumFractionDigits: 6,
    }),
)

/** USD to the cent, and an amount that would round to nothing as it is: 19.5 → '$19.50', -0.0004 → '-$0.0004'. */
export function usdText(amount: number): string {
  // Also makes a plain zero of -0.
  if (amount === 0) return cents().format(0)
  return (Math.abs(amount) < 0.005 ? millionths() : cents()).format(amount)
}

/** Whole hours as a reader plans with them: 20 → '20 h', 80 → '3 d'. */
export function hoursText(hours: number): string {
  return hours < 72 ? texts.hours(countText(hours)) : texts.days(countText(Math.floor(hours / 24)))
}

/** What is left of what users paid, in percent: '19.5%'; '—' when nobody paid. */
export function shareText({ margin, paid }: Pick<OperatorMargin, 'margin' | 'paid'>): string {
  return paid === 0 ? texts.none : percent(margin / paid)
}

/** How much of the time of the machines was paid for; '—' when there was no machine. */
export function soldText({ paid_seconds: paid, machine_seconds: all }: OperatorMargin): string {
  return all === 0 ? texts.none : percent(paid / all)
}

function percent(share: number): string {
  const tenths = Math.round(share * 1000)
  return `${(tenths === 0 ? 0 : tenths / 10).toFixed(1)}%`
}

/** A size for an operator: '0 GB', '0.04 GB', '12.5 GB'. */
export function gigabytesText(bytes: number): string {
  const size = bytes / 1e9
  return `${Number(size.toPrecision(3)).toLocaleString('en-US')} GB`
}

/** A share of a scale in percent; whatever there is, is seen. */
export function heightOf(value: number, end: number): number {
  return value <= 0 ? 0 : Math.max(1.5, (value / end) * 100)
}

/** What a table is ordered by. */
export interface Order {
  readonly column: string
  readonly falling: boolean
}

/** Rows by a value, smallest first, or largest first when falling; equal ones keep their order. */
export function sorted<Row>(
  rows: readonly Row[],
  value: (row: Row) => number | string,
  falling: boolean,
): Row[] {
  return [...rows].sort((a, b) => compare(value(a), value(b)) * (falling ? -1 : 1))
}

function compare(a: number | string, b: number | string): number {
  if (typeof a === 'string' || typeof b === 'string') return String(a).localeCompare(String(b), 'en')
  return a - b
}
