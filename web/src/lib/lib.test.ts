import { describe, expect, test } from 'vitest'
import { createChimeGate } from './chime'
import { cookieText, readCookie } from './cookie'
import { emailProblem } from './email'
import { formatRate, formatSignedUsd, formatUsd, formatWholeUsd } from './money'
import { nameOf } from './names'
import { safeRedirect } from './redirect'
import { formatAgo, formatTimeLeft, formatUptime, newestFirst } from './time'

describe('money', () => {
  test.each([
    [241.07, '$241.07'],
    [0.005, '$0.01'],
    [0, '$0.00'],
    [-0.001, '$0.00'],
    [1234.5, '$1,234.50'],
    [null, '$0.00'],
  ])('a balance of %s reads %s', (amount, text) => expect(formatUsd(amount)).toBe(text))

  test.each([
    [5, '+$5.00'],
    [0, '+$0.00'],
    [-0.0001, '-$0.00'],
    [-1.234, '-$1.23'],
  ])('a signed amount of %s reads %s', (amount, text) => expect(formatSignedUsd(amount)).toBe(text))

  test('rates have 3 decimals, storage rates 4, plan prices none', () => {
    expect(formatRate(2.64)).toBe('$2.640')
    expect(formatRate(0.1, 4)).toBe('$0.1000')
    expect(formatRate(0)).toBe('$0.000')
    expect(formatWholeUsd(10000)).toBe('$10,000')
  })
})

describe('time', () => {
  const h = 3_600_000
  test.each([
    [26 * h + 180_000, '1d 2h 3m'],
    [h + 61_000, '1h 1m 1s'],
    [61_000, '1m 1s'],
    [9_400, '9s'],
    [0, '0s'],
    [-5, '0s'],
  ])('an uptime of %s ms reads %s', (ms, text) => expect(formatUptime(ms)).toBe(text))

  test.each([
    [-5000, 'just now'],
    [59_999, 'just now'],
    [60_000, '1 min ago'],
    [59 * 60_000, '59 min ago'],
    [60 * 60_000, '1 h ago'],
    [47 * 3_600_000, '1 d ago'],
    [49 * 3_600_000, '2 d ago'],
  ])('an age of %s ms reads %s', (ms, text) => expect(formatAgo(ms)).toBe(text))

  test.each([
    [241.07, 2.95, '3d 9h left'],
    [10, 3, '3h 20m left'],
    [0.5, 1, '30m left'],
    [0, 1, '<0h'],
    [-2, 1, '<0h'],
    [1000, 1, '1mo 11d'],
    [720, 1, '30d 0h left'],
    [721, 1, '1mo 0d'],
    [24, 1, '1d 0h left'],
    [5, 0, null],
  ])('%s at %s per hour lasts %s', (balance, rate, text) => expect(formatTimeLeft(balance, rate)).toBe(text))

  test('lists are newest first and stable', () => {
    const at = (id: string, created_at: string) => ({ id, created_at })
    const sorted = newestFirst([
      at('a', '2026-01-01T00:00:00Z'),
      at('b', '2026-01-02T00:00:00Z'),
      at('c', '2026-01-02T00:00:00.000Z'),
    ])
    expect(sorted.map((x) => x.id)).toEqual(['b', 'c', 'a'])
  })
})

describe('redirect', () => {
  test.each([
    ['/billing', '/billing'],
    ['/billing?team_id=1#x', '/billing?team_id=1#x'],
    ['https://evil.test', '/pods'],
    ['//evil.test', '/pods'],
    ['/\\evil.test', '/pods'],
    ['/\t/evil.test', '/pods'],
    ['/x/..//evil.test', '/pods'],
    ['/%5Cevil.test/..//evil.test', '/pods'],
    ['/auth', '/pods'],
    ['/auth?redirect=/auth', '/pods'],
    ['pods', '/pods'],
    [undefined, '/pods'],
  ])('%s goes to %s', (value, target) => expect(safeRedirect(value, '/pods')).toBe(target))
})

describe('email', () => {
  test.each([
    ['', 'required'],
    ['   ', 'required'],
    ['a@', 'malformed'],
    ['a b@example.com', 'malformed'],
    ['a@example', 'malformed'],
    ['a@-example.com', 'malformed'],
    ['ada@example.com', null],
    [`${'a'.repeat(243)}@example.com`, null],
    [`${'a'.repeat(244)}@example.com`, 'too_long'],
  ])('%s is %s', (email, problem) => expect(emailProblem(email)).toBe(problem))
})

test('cookies are read by their whole name and set for the days asked', () => {
  expect(readCookie('team', 'xteam=1; team=a%20b; t=2')).toBe('a b')
  expect(readCookie('none', 'team=1')).toBeNull()
  expect(readCookie('team', 'team=%E0%A4%A')).toBeNull()
  expect(cookieText('team', 'x', 30)).toBe('team=x; Max-Age=2592000; Path=/; SameSite=Lax')
})

test('the chime sounds at most once a second', () => {
  const may = createChimeGate()
  expect([0, 999, 1000, 1500, 2000].map((now) => may(now))).toEqual([true, false, true, false, true])
})

test.each([
  ['secure_cloud', 'Secure cloud'],
  ['driftbay', 'Driftbay'],
  ['runpod', 'RunPod'],
  ['', ''],
])('%s is written %s', (word, name) => expect(nameOf(word)).toBe(name))
