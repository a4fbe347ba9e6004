import { expect, test } from 'vitest'
import { monthDays, monthName } from './month'

test("a month is named in the reader's language, by UTC", () => {
  expect(monthName('2027-03')).toBe('March 2027')
  expect(monthName('2027-12')).toBe('December 2027')
})

test('a month has its first and its last day', () => {
  expect(monthDays('2027-12')).toEqual({ from: '2027-12-01', to: '2027-12-31' })
  expect(monthDays('2027-02')).toEqual({ from: '2027-02-01', to: '2027-02-28' })
  expect(monthDays('2028-02')).toEqual({ from: '2028-02-01', to: '2028-02-29' })
})
