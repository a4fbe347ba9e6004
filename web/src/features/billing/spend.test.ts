import { expect, test } from 'vitest'
import type { Transaction } from '@/api/types'
import { spendByDay, spendScale, spendTotal } from './spend'

const row = (over: Partial<Transaction>): Transaction => ({
  id: '1',
  created_at: '2026-11-21T00:00:00Z',
  transaction_type: 'charge',
  resource_type: 'pod-runtime',
  resource_id: 'p1',
  amount: -0.1,
  description: '',
  reference_id: null,
  ...over,
})
const now = Date.parse('2026-11-21T18:00:00Z')

test('thirty days, oldest first, end today', () => {
  const days = spendByDay([], now)
  expect(days).toHaveLength(30)
  expect(days[0]).toEqual({ day: '2026-10-23', pods: 0, storage: 0 })
  expect(days[29]).toEqual({ day: '2026-11-21', pods: 0, storage: 0 })
})

test('usage is summed exactly per UTC day and kind; money in and out is none', () => {
  const days = spendByDay(
    [
      row({}),
      row({ resource_id: 'p2', amount: -0.2 }),
      row({ resource_type: 'volume-storage', amount: -0.000001 }),
      row({ created_at: '2026-11-20T23:59:59.999Z', amount: -1 }),
      row({ transaction_type: 'refund', created_at: '2026-11-20T10:00:00Z', amount: 0.25 }),
      row({ transaction_type: 'credit', resource_type: null, amount: 100 }),
      row({ transaction_type: 'debit', resource_type: null, amount: -50 }),
      row({ created_at: '2026-10-22T23:59:59Z', amount: -7 }),
    ],
    now,
  )
  expect(days[29]).toEqual({ day: '2026-11-21', pods: 0.3, storage: 0.000001 })
  expect(days[28]).toEqual({ day: '2026-11-20', pods: 0.75, storage: 0 })
  expect(spendTotal(days)).toBe(1.050001)
})

test('a server ahead of the browser moves the window', () => {
  const days = spendByDay([row({ created_at: '2026-12-25T00:00:00Z', amount: -3 })], now)
  expect(days[29]).toEqual({ day: '2026-12-25', pods: 3, storage: 0 })
})

test.each([
  [0, 1],
  [-2, 1],
  [0.03, 0.05],
  [1, 1],
  [1.01, 2],
  [19.2, 20],
  [51, 100],
  [466.8, 500],
])('a largest day of %s has a scale to %s', (pods, end) =>
  expect(spendScale([{ day: '2026-11-21', pods, storage: 0 }])).toBeCloseTo(end, 9),
)
