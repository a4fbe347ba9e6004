import { describe, expect, test } from 'vitest'
import { balanceOf, freshFor, snapshotOf, walletView } from './model'

const data = { balance: 241.07, spending_per_hour: 2.95, last_updated: '2026-01-01T00:00:00Z' }

describe('the wallet box', () => {
  test.each([
    ['a visitor', { team: 'none', data: undefined, failures: 0 }, { kind: 'nobody' }],
    ['somebody not known yet', { team: 'loading', data: undefined, failures: 0 }, { kind: 'loading' }],
    ['a first reading', { team: 'ready', data: undefined, failures: 0 }, { kind: 'loading' }],
    ['a first reading that failed', { team: 'ready', data: undefined, failures: 1 }, { kind: 'failed' }],
    ['a balance', { team: 'ready', data, failures: 0 }, { kind: 'known', balance: 241.07, rate: 2.95 }],
    ['old data', { team: 'ready', data, failures: 7 }, { kind: 'known', balance: 241.07, rate: 2.95 }],
    [
      'an empty wallet',
      { team: 'ready', data: { ...data, balance: 0, spending_per_hour: 0 }, failures: 0 },
      { kind: 'known', balance: 0, rate: 0 },
    ],
  ] as const)('of %s', (_, facts, view) => expect(walletView(facts)).toEqual(view))
})

describe('a snapshot', () => {
  const at = 1_800_000_000_000
  const stored = JSON.parse(JSON.stringify(snapshotOf(data, at)))

  test.each([
    ['at once', at, data],
    ['after five minutes', at + freshFor, data],
    ['after more than five minutes', at + freshFor + 1, undefined],
    ['before it was taken', at - 1, undefined],
  ])('read %s', (_, now, balance) => expect(balanceOf(stored, now)).toEqual(balance))

  test.each([
    [null],
    ['text'],
    [[]],
    [{ at }],
    [{ at: 'now', balance: data }],
    [{ at, balance: { ...data, balance: '241.07' } }],
    [{ at, balance: { ...data, spending_per_hour: null } }],
    [{ at, balance: { balance: 1, spending_per_hour: 1 } }],
  ])('that is damaged is none: %j', (damaged) => expect(balanceOf(damaged, at)).toBeUndefined())
})
