import { expect, test } from 'vitest'
import type { Member } from '@/api/types'
import { capacityOf, isFull, removalBlock, withRole } from './model'

const member = (user_id: string, role: Member['role']): Member => ({ id: user_id, user_id, email: '', role })
const admin = member('a', 'admin')
const other = member('b', 'member')
const team = { is_personal: false, role: 'admin' } as const

test.each([
  [{ plan: 'pro', max_members: 12 }, 12],
  [{ plan: 'pro', max_members: 0 }, 5],
  [{ plan: 'pro' }, 5],
  [{ plan: 'pro', max_members: -1 }, 5],
  [{ plan: 'hobby' }, 1],
  [{ plan: 'free' }, 1],
] as const)('%j holds %i', (plan, seats) => expect(capacityOf(plan)).toBe(seats))

test('the first reason against a removal is the one that is shown', () => {
  expect(removalBlock({ ...team, is_personal: true }, [admin], admin, 'a')).toBe('personal')
  expect(removalBlock(team, [admin], admin, 'a')).toBe('last')
  expect(removalBlock(team, [admin, other], admin, 'a')).toBe('self')
  expect(removalBlock(team, [admin, other], other, 'a')).toBeNull()
  expect(removalBlock({ ...team, role: 'member' }, [admin, other], admin, 'b')).toBe('admins')
  expect(removalBlock({ ...team, role: 'member' }, [admin, other], other, 'b')).toBeNull()
})

test('members and invitations share the seats', () => {
  expect(isFull(5, 3, 2)).toBe(true)
  expect(isFull(5, 3, 1)).toBe(false)
})

test('a role is changed for one member alone', () => {
  expect(withRole([admin, other], 'b', 'viewer')).toEqual([admin, { ...other, role: 'viewer' }])
  expect(withRole([admin], 'gone', 'viewer')).toEqual([admin])
  expect(withRole(undefined, 'b', 'viewer')).toBeUndefined()
})
