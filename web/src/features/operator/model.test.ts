import { expect, test } from 'vitest'
import {
  gigabytesText,
  heightOf,
  hoursText,
  offersOnSale,
  scoreTone,
  shareText,
  soldText,
  sorted,
  usdText,
} from './model'

test('amounts are shown to the cent, and those below a cent as they are', () => {
  expect([19.5, -3.2, 0, -0, 0.000001, -0.0004, 0.005, 1234567.891].map(usdText)).toEqual([
    '$19.50',
    '-$3.20',
    '$0.00',
    '$0.00',
    '$0.000001',
    '-$0.0004',
    '$0.01',
    '$1,234,567.89',
  ])
})

test('hours are days from three days on', () => {
  expect([0, 20, 71, 72, 100, 24_000].map(hoursText)).toEqual([
    '0 h',
    '20 h',
    '71 h',
    '3 d',
    '4 d',
    '1,000 d',
  ])
})

test('a margin in percent is one of what users paid', () => {
  const share = (margin: number, paid: number) => shareText({ margin, paid })
  expect([share(19.5, 100), share(-3.2, 10), share(0, 5), share(-1, 0), share(-0.0001, 100)]).toEqual([
    '19.5%',
    '-32.0%',
    '0.0%',
    '—',
    '0.0%',
  ])
})

test('machine time is sold as far as it was paid', () => {
  const row = { paid: 1, upstream: 1, margin: 0, negative: false }
  expect(soldText({ ...row, paid_seconds: 3600, machine_seconds: 4000 })).toBe('90.0%')
  expect(soldText({ ...row, paid_seconds: 0, machine_seconds: 0 })).toBe('—')
})

test('offers of a catalogue are on sale while the cloud works or is on trial', () => {
  const states = ['works', 'trial', 'broken', 'no_funds', 'stale', 'silent', 'off'] as const
  expect(states.map((health) => offersOnSale({ health, offers: 5 }))).toEqual([5, 5, 0, 0, 0, 0, 0])
})

test('scores are judged by two steps', () => {
  expect([100, 90, 89, 70, 69, 0].map(scoreTone)).toEqual([
    'ready',
    'ready',
    'warn',
    'warn',
    'danger',
    'danger',
  ])
})

test('sizes keep three digits', () => {
  expect([0, 40_000_000, 12_345_678_901, 1_234_567_890_123].map(gigabytesText)).toEqual([
    '0 GB',
    '0.04 GB',
    '12.3 GB',
    '1,230 GB',
  ])
})

test('whatever was paid is seen in the chart, and a refund has no height', () => {
  expect([heightOf(50, 100), heightOf(0.001, 100), heightOf(0, 100), heightOf(-3, 100)]).toEqual([
    50, 1.5, 0, 0,
  ])
})

test('rows are ordered both ways, equal ones stay as they were', () => {
  const rows = [
    { name: 'b', margin: 2 },
    { name: 'a', margin: -1 },
    { name: 'c', margin: 2 },
  ]
  const names = (value: (row: (typeof rows)[number]) => number | string, falling: boolean) =>
    sorted(rows, value, falling).map(({ name }) => name)
  expect(names(({ margin }) => margin, false)).toEqual(['a', 'b', 'c'])
  expect(names(({ margin }) => margin, true)).toEqual(['b', 'c', 'a'])
  expect(names(({ name }) => name, true)).toEqual(['c', 'b', 'a'])
  expect(rows[0]?.name).toBe('b')
})
