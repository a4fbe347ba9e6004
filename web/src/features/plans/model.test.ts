import { expect, test } from 'vitest'
import { countProblem, monthlyCost } from './model'

test.each([
  ['', 'countRequired'],
  ['  ', 'countRequired'],
  ['x', 'countInvalid'],
  ['1.5', 'countInvalid'],
  ['1e2', 'countInvalid'],
  ['0', 'countTooFew'],
  ['-3', 'countTooFew'],
  ['101', 'countTooMany'],
  ['1', null],
  ['100', null],
])('a member count of "%s" is %s', (text, problem) => expect(countProblem(text)).toBe(problem))

test('each further member costs as much as the base', () => {
  expect(monthlyCost(1)).toEqual({ base: 100, extraMembers: 0, extra: 0, total: 100 })
  expect(monthlyCost(3)).toEqual({ base: 100, extraMembers: 2, extra: 200, total: 300 })
})
