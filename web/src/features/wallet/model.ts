import type { Balance } from '@/api/types'
import { asRecord } from '@/lib/storage'

/** How long a balance counts as fresh, in milliseconds. */
export const freshFor = 5 * 60_000

/** What the wallet box shows. */
export type WalletView =
  /** Nobody to have a wallet: a visitor, or a user without any team. */
  | { readonly kind: 'nobody' }
  /** The first reading is under way. */
  | { readonly kind: 'loading' }
  /** Nothing is known, and reading it failed. */
  | { readonly kind: 'failed' }
  | { readonly kind: 'known'; readonly balance: number; readonly rate: number }

interface Facts {
  /** Whether the reader is a visitor (`none`), not known yet, or has a team on stage. */
  readonly team: 'loading' | 'none' | 'ready'
  readonly data: Pick<Balance, 'balance' | 'spending_per_hour'> | undefined
  /** How many readings have failed so far. */
  readonly failures: number
}

/**
 * What to show of a wallet. Old data outlives every failure; without data the first failure stands until a
 * reading succeeds, so that a wallet that cannot be read does not start anew every 30 seconds.
 */
export function walletView({ team, data, failures }: Facts): WalletView {
  if (team === 'none') return { kind: 'nobody' }
  if (data) return { kind: 'known', balance: data.balance, rate: data.spending_per_hour }
  return { kind: failures > 0 ? 'failed' : 'loading' }
}

/** What is kept of a balance between two loads of the page. */
export function snapshotOf(balance: Balance, at: number): unknown {
  return { at, balance }
}

/** The balance of a stored snapshot, unless it is damaged, older than five minutes or from the future. */
export function balanceOf(stored: unknown, now: number): Balance | undefined {
  const { at, balance } = asRecord(stored) ?? {}
  if (typeof at !== 'number' || now - at > freshFor || at > now) return undefined
  const { balance: amount, spending_per_hour: spending, last_updated: updated } = asRecord(balance) ?? {}
  if (typeof amount !== 'number' || typeof spending !== 'number' || typeof updated !== 'string')
    return undefined
  return { balance: amount, spending_per_hour: spending, last_updated: updated }
}
