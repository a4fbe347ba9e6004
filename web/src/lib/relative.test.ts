import { expect, test } from 'vitest'
import { formatRelative } from './relative'

const now = Date.parse('2026-11-21T12:00:00Z')

test.each([
  ['2026-11-21T12:00:00Z', 'now'],
  ['2026-11-21T11:59:01Z', 'now'],
  ['2026-11-21T11:59:00Z', '1 minute ago'],
  ['2026-11-21T09:00:01Z', '2 hours ago'],
  ['2026-11-20T12:00:00Z', '1 day ago'],
  ['2026-11-19T13:00:00Z', '1 day ago'],
  ['2026-11-01T12:00:00Z', '20 days ago'],
  ['2026-10-22T12:00:00Z', '1 month ago'],
  ['2024-11-20T12:00:00Z', '2 years ago'],
  ['2026-11-24T12:00:00Z', 'in 3 days'],
])('%s is %s', (instant, text) => expect(formatRelative(instant, now)).toBe(text))
