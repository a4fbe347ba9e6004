import type { Transaction } from '@/api/types'
import { newestFirst } from '@/lib/time'
import type { Tone } from '@/ui/badge'

/** The tabs of the transaction history. */
export type HistoryTab = 'credits' | 'pods' | 'storage'

export const historyTabs: readonly HistoryTab[] = ['credits', 'pods', 'storage']

/** The tab a row belongs to: usage by its resource, everything else to the credits, so that nothing is lost. */
export function tabOf(row: Pick<Transaction, 'transaction_type' | 'resource_type'>): HistoryTab {
  if (row.transaction_type === 'credit') return 'credits'
  if (row.resource_type === 'pod-runtime') return 'pods'
  return row.resource_type === 'volume-storage' ? 'storage' : 'credits'
}

const transactionLimit = 1000

/** Whether the list ends at the limit of one answer, so that older rows may be missing. */
export function isCut(transactions: readonly Transaction[]): boolean {
  return transactions.length >= transactionLimit
}

/** The rows of a tab, newest first. */
export function rowsOf(transactions: readonly Transaction[], tab: HistoryTab): Transaction[] {
  return newestFirst(transactions.filter((row) => tabOf(row) === tab))
}

/** The storage rows of one volume. */
export interface VolumeGroup {
  readonly volumeId: string
  readonly rows: readonly Transaction[]
  /** The sum of the amounts, in USD. */
  readonly total: number
}

/** Storage rows by volume; the group with the most recent row comes first. */
export function groupByVolume(transactions: readonly Transaction[]): VolumeGroup[] {
  const groups = new Map<string, Transaction[]>()
  for (const row of rowsOf(transactions, 'storage')) {
    const id = row.resource_id ?? ''
    groups.set(id, [...(groups.get(id) ?? []), row])
  }
  return [...groups].map(([volumeId, rows]) => ({ volumeId, rows, total: sum(rows) }))
}

/** 'ref-' and the first 8 characters of the reference, or null without one. */
export function referenceText(reference: string | null | undefined): string | null {
  return reference ? `ref-${reference.slice(0, 8)}` : null
}

/** The colour of a type's badge. */
export const typeTones: Record<Transaction['transaction_type'], Tone> = {
  credit: 'ready',
  refund: 'tide',
  charge: 'quiet',
  debit: 'warn',
}

/** A positive amount out of what was typed, or null. */
export function parseAmount(text: string): number | null {
  const amount = text.trim() === '' ? Number.NaN : Number(text)
  return Number.isFinite(amount) && amount > 0 ? amount : null
}

/** The id of the newest credit, '' for none. A payer is waiting until it is another one. */
export function newestCredit(transactions: readonly Transaction[]): string {
  return newestFirst(transactions.filter((row) => row.transaction_type === 'credit'))[0]?.id ?? ''
}

/** How far a list is, from the state of its query; trying again after a failure is still the failure. */
export function phaseOf(query: {
  isPending: boolean
  isError: boolean
  isFetched: boolean
}): 'first' | 'failed' | 'loaded' {
  if (query.isError || (query.isPending && query.isFetched)) return 'failed'
  return query.isPending ? 'first' : 'loaded'
}

/** Sums in millionths, where the API's amounts are whole numbers. */
function sum(rows: readonly Transaction[]): number {
  return rows.reduce((total, row) => total + Math.round(row.amount * 1e6), 0) / 1e6
}
