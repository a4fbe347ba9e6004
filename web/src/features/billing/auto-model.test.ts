import { expect, test } from 'vitest'
import { brandOf, expiryOf, isExpired, needsLook, topUpProblems } from './auto-model'

test.each([
  [{ threshold: '5', amount: '25', cap: '500' }, []],
  [{ threshold: '1', amount: '0.50', cap: '0.5' }, []],
  [{ threshold: '10000', amount: '10000', cap: '100000' }, []],
  [{ threshold: '0.99', amount: '25', cap: '500' }, ['threshold']],
  [{ threshold: '', amount: '0.49', cap: '500' }, ['threshold', 'amount']],
  [{ threshold: '5', amount: '25', cap: '24.99' }, ['cap']],
  [{ threshold: '5.001', amount: '1e2', cap: '100001' }, ['threshold', 'amount', 'cap']],
] as const)('%j has wrong %j', (typed, wrong) => expect(topUpProblems(typed, 0.5)).toEqual(wrong))

test('a card is named as it is printed, and good to the end of its month', () => {
  const card = { brand: 'visa', exp_month: 4, exp_year: 2030 }
  expect(brandOf(card)).toBe('Visa')
  expect(expiryOf(card)).toBe('04/2030')
  expect(isExpired(card, new Date('2030-04-30T23:59:59Z'))).toBe(false)
  expect(isExpired(card, new Date('2030-05-01T00:00:00Z'))).toBe(true)
})

test.each([
  ['on', null, false],
  ['capped', null, false],
  ['retrying', null, true],
  ['held', null, true],
  ['off', null, false],
  ['off', 'declined', true],
] as const)('%s, off because of %s, is to be looked at: %s', (state, off_reason, look) =>
  expect(needsLook({ state, off_reason })).toBe(look),
)
