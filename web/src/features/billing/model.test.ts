import { describe, expect, test } from 'vitest'
import type { Transaction } from '@/api/types'
import { groupByVolume, newestCredit, parseAmount, phaseOf, referenceText, rowsOf, tabOf } from './model'

const row = (over: Partial<Transaction>): Transaction => ({
  id: '1',
  created_at: '2026-01-01T00:00:00Z',
  transaction_type: 'charge',
  resource_type: 'volume-storage',
  resource_id: 'v1',
  amount: -0.1,
  description: '',
  reference_id: null,
  ...over,
})

test.each([
  ['credit', null, 'credits'],
  ['debit', null, 'credits'],
  ['refund', null, 'credits'],
  ['charge', 'pod-runtime', 'pods'],
  ['refund', 'pod-runtime', 'pods'],
  ['charge', 'volume-storage', 'storage'],
] as const)('a %s of %s is on the tab %s', (transaction_type, resource_type, tab) => {
  expect(tabOf({ transaction_type, resource_type })).toBe(tab)
})

test('rows are newest first', () => {
  const rows = [row({ id: 'old' }), row({ id: 'new', created_at: '2026-02-01T00:00:00Z' })]
  expect(rowsOf(rows, 'storage').map(({ id }) => id)).toEqual(['new', 'old'])
})

describe('storage groups', () => {
  test('are ordered by their most recent row and carry an exact sum', () => {
    const groups = groupByVolume([
      row({ id: 'a', resource_id: 'v1', amount: -0.1, created_at: '2026-01-03T00:00:00Z' }),
      row({ id: 'b', resource_id: 'v2', amount: -1, created_at: '2026-01-04T00:00:00Z' }),
      row({ id: 'c', resource_id: 'v1', amount: -0.2, created_at: '2026-01-01T00:00:00Z' }),
      row({ id: 'd', resource_type: 'pod-runtime' }),
    ])
    expect(groups.map(({ volumeId, total }) => [volumeId, total])).toEqual([
      ['v2', -1],
      ['v1', -0.3],
    ])
    expect(groups[1]?.rows.map(({ id }) => id)).toEqual(['a', 'c'])
  })
})

test('a reference shows its first 8 characters', () => {
  expect(referenceText('1a2b3c4d5e')).toBe('ref-1a2b3c4d')
  expect(referenceText(null)).toBeNull()
  expect(referenceText('')).toBeNull()
})

test.each([
  ['12.34', 12.34],
  ['0.01', 0.01],
  ['0', null],
  ['-5', null],
  ['abc', null],
  ['', null],
  ['  ', null],
  ['Infinity', null],
])('the amount %s is %s', (text, amount) => expect(parseAmount(text)).toBe(amount))

test('a payer waits for another credit than the newest one known', () => {
  const credit = row({ id: 'c1', transaction_type: 'credit', resource_type: null })
  const newer = { ...credit, id: 'c2', created_at: '2026-02-01T00:00:00Z' }
  const usage = row({ id: 'u', created_at: '2026-03-01T00:00:00Z' })
  expect(newestCredit([])).toBe('')
  expect(newestCredit([usage])).toBe('')
  expect(newestCredit([credit, usage])).toBe('c1')
  expect(newestCredit([credit, newer, usage])).toBe('c2')
})

test.each([
  [{ isPending: true, isError: false, isFetched: false }, 'first'],
  [{ isPending: true, isError: false, isFetched: true }, 'failed'],
  [{ isPending: false, isError: true, isFetched: true }, 'failed'],
  [{ isPending: false, isError: false, isFetched: true }, 'loaded'],
] as const)('a query in state %j is %s', (query, phase) => expect(phaseOf(query)).toBe(phase))
