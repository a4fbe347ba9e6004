import { expect, test } from 'vitest'
import type { Notice } from '@/api/types'
import { textOf } from './model'

const notice = (kind: Notice['kind'], part: Partial<Notice> = {}): Notice => ({
  id: 'n',
  team_id: 't',
  kind,
  created_at: '2027-03-14T12:00:00Z',
  ends_at: '2027-03-15T12:00:00Z',
  balance: 5,
  spending_per_hour: 1,
  month_spent: 8,
  month_limit: 10,
  volumes: 1,
  ...part,
})

const kinds: [Notice['kind'], 'info' | 'danger', string][] = [
  ['runway_24h', 'info', 'Add funds'],
  ['runway_1h', 'info', 'Add funds'],
  ['runway_15m', 'info', 'Add funds'],
  ['balance_empty', 'info', 'Add funds'],
  ['storage_frozen', 'danger', 'Add funds'],
  ['storage_soon', 'danger', 'Add funds'],
  ['storage_last', 'danger', 'Add funds'],
  ['storage_trashed', 'danger', 'Add funds'],
  ['spend_80', 'info', 'See your spending'],
  ['spend_95', 'info', 'See your spending'],
  ['spend_limit', 'info', 'See your spending'],
  ['plan_unpaid', 'danger', 'Pay the subscription'],
  ['plan_ends', 'danger', 'Pay the subscription'],
  ['topup_declined', 'info', 'Open billing'],
  ['topup_off', 'info', 'Open billing'],
  ['topup_authentication', 'info', 'Open billing'],
  ['topup_capped', 'info', 'Open billing'],
  ['topup_card_removed', 'info', 'Open billing'],
]

test.each(kinds)('%s says what happens and where to go', (kind, tone, next) => {
  const text = textOf(notice(kind))
  expect(text).toMatchObject({ tone, next })
  expect(text.title).not.toBe('')
  expect(text.detail).not.toContain('undefined')
})

test('a notice without an instant still is a sentence', () => {
  expect(textOf(notice('runway_1h', { ends_at: null })).detail).toContain('soon')
})

test('the limit is told with its figures', () => {
  expect(textOf(notice('spend_80')).detail).toBe('$8.00 of $10.00 was spent this month.')
})
