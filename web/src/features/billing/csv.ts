import type { Transaction } from '@/api/types'
import { downloadText } from '@/lib/download'
import { newestFirst } from '@/lib/time'

const header = [
  'Date (UTC)',
  'Type',
  'Amount (USD)',
  'Description',
  'Reference',
  'Resource Type',
  'Resource Id',
  'Transaction Id',
]

/** Hands the transactions of a team to the reader as a file of today, newest first. */
export function saveTransactions(teamId: string, rows: readonly Transaction[]): void {
  const day = new Date().toISOString().slice(0, 10)
  const name = `homeport-transactions-${teamId.slice(0, 8)}-${day}.csv`
  downloadText(name, 'text/csv;charset=utf-8', transactionsCsv(newestFirst(rows)))
}

/** Transactions as a CSV file by RFC 4180, in the given order, with exact amounts and UTC instants. */
export function transactionsCsv(rows: readonly Transaction[]): string {
  const lines = rows.map((row) => [
    new Date(row.created_at).toISOString(),
    textCell(row.transaction_type),
    exactAmount(row.amount),
    textCell(row.description),
    textCell(row.reference_id),
    textCell(row.resource_type),
    textCell(row.resource_id),
    textCell(row.id),
  ])
  return [header, ...lines].map((cells) => `${cells.join(',')}\r\n`).join('')
}

/**
 * A text as a cell. A spreadsheet would run a text that begins like a formula: an apostrophe in front makes it
 * the text that it is. Names of volumes and teams come from people.
 */
function textCell(text: string | null): string {
  const safe = /^\s*[=+\-@]|^[\t\r]/.test(text ?? '') ? `'${text}` : (text ?? '')
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** All six decimals of the books, never an exponent; zeros beyond the cents are left out. */
function exactAmount(amount: number): string {
  return amount.toFixed(6).replace(/0{1,4}$/, '')
}
