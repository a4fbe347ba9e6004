import { expect, test } from 'vitest'
import { limitProblem, seatsProblem, stepSeats } from './plan-model'

const plan = { member_count: 5, seats_taken: 3 }

test.each([
  ['', 'number'],
  ['many', 'number'],
  ['2.5', 'number'],
  ['-1', 'number'],
  ['0', 'taken'],
  ['2', 'taken'],
  ['3', null],
  [' 4 ', null],
  ['5', 'same'],
  ['100', null],
  ['101', 'most'],
] as const)('%j seats of a team with 5, of which 3 are taken: %s', (text, problem) =>
  expect(seatsProblem(text, plan)).toBe(problem),
)

test.each([
  ['5', 1, '6'],
  ['4', -1, '3'],
  ['3', -1, null],
  ['100', 1, null],
  ['', 1, '6'],
  ['x', -1, '4'],
] as const)('from %j seats %d step leads to %j', (text, by, to) => expect(stepSeats(text, by, plan)).toBe(to))

test.each([
  [null, 1000, 'invalid'],
  [0.01, 1000, null],
  [1000, 1000, null],
  [1000.01, 1000, 'tooHigh'],
  [99_999, 0, null],
] as const)('a limit of %j under a plan of %d: %s', (amount, most, problem) =>
  expect(limitProblem(amount, most)).toBe(problem),
)
