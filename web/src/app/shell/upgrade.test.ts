import { expect, test } from 'vitest'
import { awayFor, closedFor } from './upgrade'

const at = 1_800_000_000_000
const minute = 60_000

test.each([
  ['right after', at, closedFor],
  ['4 h 59 min after', at + 299 * minute, minute],
  ['just before 5 h after', at + closedFor - 1, 1],
  ['5 h after', at + closedFor, 0],
  ['5 h 1 min after', at + 301 * minute, 0],
  ['before (the clock was set back)', at - 1, 0],
])('the closed box, %s, stays away for %s', (_, now, away) =>
  expect(awayFor({ closedAt: at }, now)).toBe(away),
)

test.each([[null], ['soon'], [{}], [{ closedAt: 'now' }], [[at]]])('%j closes nothing', (stored) =>
  expect(awayFor(stored, at)).toBe(0),
)
