import { expect, test } from 'vitest'
import { atVolumeLimit, nameOrUntitled, usedPercent, usedText, volumePrice } from './model'

test.each([
  [123, '123/500 GB', '25%', 0.0246],
  [123.4, '123.4/500 GB', '25%', 0.02468],
  [0, '0/500 GB', '0%', 0],
  [480.25, '480.25/500 GB', '96%', 0.09605],
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
