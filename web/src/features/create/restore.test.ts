import { expect, test } from 'vitest'
import { restoreMinutes } from './restore'

test.each([
  [0, 0],
  [0.01, 1],
  [13.75, 1],
  [13.76, 2],
  [50, 4],
  [500, 34],
])('a volume of %d GB is back within %d minutes', (sizeGb, minutes) => {
  expect(restoreMinutes(sizeGb)).toBe(minutes)
})
