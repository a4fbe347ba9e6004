import { expect, test } from 'vitest'
import { atVolumeLimit, nameOrUntitled, quotaWarning, usedPercent, usedText, volumePrice } from './model'

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
