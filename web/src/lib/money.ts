/** Money as the pages show it. The API gives USD as JSON numbers with at most six decimals. */
import { lazy } from './lazy'

// The first formatter of a page takes a slow phone 60 ms, and the landing page needs none.
const usd = lazy(() => new Intl.NumberFormat('en-US', { style: 'currency', currency: 'USD' }))
const whole = lazy(() => new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 }))

/** 241.07 → '$241.07'; null (not known) → '$0.00'. */
export function formatUsd(amount: number | null | undefined): string {
  return usd().format(withoutMinusZero(amount ?? 0, 2))
}

/** A signed amount, with a plus sign unless it is negative: 5 → '+$5.00', 0 → '+$0.00', -0.004 → '-$0.00'. */
export function formatSignedUsd(amount: number): string {
  return `${amount < 0 ? '-' : '+'}${usd().format(Math.abs(amount))}`
}

/** Dollars without cents: 1300 → '$1,300'. */
export function formatWholeUsd(amount: number): string {
  return `$${whole().format(amount)}`
}

/** A rate per hour without its unit: 2.64 → '$2.640'. Storage rates take 4 decimals. */
export function formatRate(perHour: number, decimals = 3): string {
  return `$${withoutMinusZero(perHour, decimals).toFixed(decimals)}`
}

function withoutMinusZero(value: number, decimals: number): number {
  return Number(value.toFixed(decimals)) === 0 ? 0 : value
}
