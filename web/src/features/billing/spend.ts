import type { Transaction } from '@/api/types'
import { scaleEnd } from '@/lib/chart'
import { tabOf } from './model'

/** What one UTC day cost, in USD: charges less what was refunded. */
export interface SpendDay {
  /** As 2026-11-21. */
  readonly day: string
  readonly pods: number
  readonly storage: number
}

const dayMs = 24 * 60 * 60_000
const days = 30

/**
 * The last 30 UTC days, oldest first, each with its usage. They end today, or with the newest usage where the
 * server's day is ahead of the browser's. Sums are made in millionths, where amounts are whole numbers.
 */
export function spendByDay(transactions: readonly Transaction[], now: number): SpendDay[] {
  const usage = transactions.filter((row) => tabOf(row) !== 'credits')
  const end = Math.max(now, ...usage.map((row) => Date.parse(row.created_at)))
  const sums = new Map<string, { pods: number; storage: number }>()
  for (const row of usage) {
    const day = dayOf(Date.parse(row.created_at))
    const sum = sums.get(day) ?? { pods: 0, storage: 0 }
    sum[tabOf(row) === 'pods' ? 'pods' : 'storage'] -= Math.round(row.amount * 1e6)
    sums.set(day, sum)
  }
  return Array.from({ length: days }, (_, index) => {
    const day = dayOf(end - (days - 1 - index) * dayMs)
    const { pods, storage } = sums.get(day) ?? { pods: 0, storage: 0 }
    return { day, pods: pods / 1e6, storage: storage / 1e6 }
  })
}

/** What all days cost together, in USD. */
export function spendTotal(spend: readonly SpendDay[]): number {
  return spend.reduce((sum, day) => sum + Math.round((day.pods + day.storage) * 1e6), 0) / 1e6
}

/** The end of the chart's scale. A day of more refunds than charges has no height. */
export function spendScale(spend: readonly SpendDay[]): number {
  return scaleEnd(Math.max(0, ...spend.map(({ pods, storage }) => Math.max(0, pods) + Math.max(0, storage))))
}

function dayOf(instant: number): string {
  return new Date(instant).toISOString().slice(0, 10)
}
