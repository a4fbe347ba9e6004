import { expect, test } from 'vitest'
import { progressAt, splitToken } from './progress'

test.each([
  [0, 2000, 0],
  [49, 2000, 0],
  [50, 2000, 2.375],
  [1000, 2000, 47.5],
  [2000, 2000, 95],
  [60_000, 2000, 95],
  [500, 1000, 47.5],
])('after %i ms of %i the progress is %d %%', (elapsed, duration, percent) => {
  expect(progressAt(elapsed, duration)).toBeCloseTo(percent)
})

test('a message is split around its count-and-type token', () => {
  expect(splitToken('Delete 2xA100_80GB? Gone.')).toEqual({
    before: 'Delete ',
    token: '2xA100_80GB',
    after: '? Gone.',
  })
  expect(splitToken('Delete datasets?')).toBeNull()
})
