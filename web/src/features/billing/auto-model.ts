import type { AutoTopUp, Card } from '@/api/types'
import { nameOf } from '@/lib/names'

const mostThreshold = 10_000
const mostAmount = 10_000
const mostCap = 100_000

/** What was typed of an agreement on automatic top-ups. */
export interface TypedTopUp {
  readonly threshold: string
  readonly amount: string
  readonly cap: string
}

/** The fields that are wrong: amounts in USD with at most 2 decimals, the cap at least one top-up. */
export function topUpProblems(typed: TypedTopUp, least: number): (keyof TypedTopUp)[] {
  const amount = usdOf(typed.amount)
  const wrong: Record<keyof TypedTopUp, boolean> = {
    threshold: !within(usdOf(typed.threshold), 1, mostThreshold),
    amount: !within(amount, least, mostAmount),
    cap: !within(usdOf(typed.cap), amount ?? least, mostCap),
  }
  return (['threshold', 'amount', 'cap'] as const).filter((field) => wrong[field])
}

function usdOf(text: string): number | null {
  return /^\d+(\.\d{1,2})?$/.test(text.trim()) ? Number(text) : null
}

function within(amount: number | null, least: number, most: number): boolean {
  return amount !== null && amount >= least && amount <= most
}

/** 'visa' → 'Visa'. */
export function brandOf(card: Pick<Card, 'brand'>): string {
  return nameOf(card.brand)
}

/** When a card expires, as it is printed on it: '04/2030'. */
export function expiryOf(card: Pick<Card, 'exp_month' | 'exp_year'>): string {
  return `${String(card.exp_month).padStart(2, '0')}/${card.exp_year}`
}

/** Whether a card's last month is over. */
export function isExpired(card: Pick<Card, 'exp_month' | 'exp_year'>, now: Date): boolean {
  return now.getTime() >= Date.UTC(card.exp_year, card.exp_month, 1)
}

/** Whether automatic top-ups are agreed on but do not happen now, or went off by themselves. */
export function needsLook(topUp: Pick<AutoTopUp, 'state' | 'off_reason'>): boolean {
  return topUp.state === 'retrying' || topUp.state === 'held' || topUp.off_reason !== null
}
