// @vitest-environment jsdom
import { beforeEach, expect, test } from 'vitest'
import { saveRedirect, takeSavedRedirect } from './queries'

const now = 1_700_000_000_000
const hour = 60 * 60_000

beforeEach(() => localStorage.clear())

test('a kept path is honoured once', () => {
  saveRedirect('/storage', now)
  expect(takeSavedRedirect(now + 1)).toBe('/storage')
  expect(takeSavedRedirect(now + 1)).toBeNull()
})

test.each([
  [hour, '/storage'],
  [hour + 1, null],
])('after %i ms a kept path is %s', (later, path) => {
  saveRedirect('/storage', now)
  expect(takeSavedRedirect(now + later)).toBe(path)
})

test.each(['//evil.test', 'https://evil.test', '/\\evil.test', '/auth', ''])('%s is never kept', (path) => {
  saveRedirect(path, now)
  expect(takeSavedRedirect(now)).toBeNull()
})

test('nothing kept, or something damaged, is no path', () => {
  expect(takeSavedRedirect(now)).toBeNull()
  localStorage.setItem('homeport-redirect', '{"path":1}')
  expect(takeSavedRedirect(now)).toBeNull()
})
