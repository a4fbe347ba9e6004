import { expect, test } from 'vitest'
import {
  atVolumeLimit,
  nameOrUntitled,
  quotaWarning,
  someWillLock,
  trashCost,
  usedPercent,
  usedText,
  volumePrice,
} from './model'

test.each([
  [123, '123/500 GB', '25%', 0.0246],
  [123.4, '123.4/500 GB', '25%', 0.02468],
  [0, '0/500 GB', '0%', 0],
  [0.05, '0.05/500 GB', '0%', 0.00001],
  [480.25, '480.25/500 GB', '96%', 0.09605],
  [512.5, '512.5/500 GB', '103%', 0.1025],
])('a volume with %d GB', (size, text, percent, price) => {
  expect(usedText(size)).toBe(text)
  expect(usedPercent(size)).toBe(percent)
  expect(volumePrice(size)).toBeCloseTo(price, 8)
})

test('names are trimmed and never empty', () => {
  expect(nameOrUntitled('  x  ', 'Untitled')).toBe('x')
  expect(nameOrUntitled('   ', 'Untitled')).toBe('Untitled')
})

test('hobby teams have one volume, pro teams any number', () => {
  expect([atVolumeLimit(false, 0), atVolumeLimit(false, 1), atVolumeLimit(true, 9)]).toEqual([
    false,
    true,
    false,
  ])
})

test.each([
  [449.99, null],
  [450, 'near'],
  [499.99, 'near'],
  [500, 'full'],
  [525, 'full'],
  [525.01, 'over'],
])('at %d GB the quota says %s', (size, warning) => expect(quotaWarning(size)).toBe(warning))

test.each([
  [0, 24, 0],
  [123, 0, 0],
  [123, 24, 0.5904],
  [0.01, 1, 0.0001],
  [500, 168, 16.8],
])('%d GB that lay %d hours in the trash cost %d', (size, hours, cost) => {
  const deleted = '2026-11-01T00:00:00Z'
  expect(trashCost(size, deleted, Date.parse(deleted) + hours * 3_600_000)).toBe(cost)
})

test('a clock that runs behind the server owes nothing', () => {
  expect(trashCost(123, '2026-11-01T00:00:00Z', Date.parse('2026-10-31T23:59:59Z'))).toBe(0)
})

test.each([
  ['without a key of its own', { team_key: false, locked: false, currently_used: false }, false],
  ['that is locked', { team_key: true, locked: true, currently_used: false }, false],
  ['that a pod holds', { team_key: true, locked: false, currently_used: true }, false],
  ['that is open and free', { team_key: true, locked: false, currently_used: false }, true],
])('a volume %s will lock itself: %#', (_, volume, will) => {
  expect(someWillLock([volume])).toBe(will)
  expect(someWillLock(undefined)).toBe(false)
})
