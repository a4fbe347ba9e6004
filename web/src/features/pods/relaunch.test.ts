import { expect, test } from 'vitest'
import type { Offer } from '@/api/types'
import { canRelaunch, sameAgain, volumeTaken } from './model'

const pod = { gpu_count: 2, provider: 'Harbor', country: 'US' }
const offer = (part: Partial<Offer>): Offer => ({
  gpuType: 'A100_80GB',
  gpuCount: 2,
  gpuMemory: 160,
  memory: 240,
  vcpu: 28,
  price: 2,
  listPrice: 2,
  socket: 'SXM4',
  country: 'US',
  provider: 'Harbor',
  cloudId: 'c',
  currency: 'USD',
  defaultDiskSize: 640,
  diskPrice: null,
  security: 'secure',
  isSpot: false,
  dataCenterId: null,
  image: 'i',
  ...part,
})

const ended = { status: 'deleted', relaunch_of: null, relaunched_as: null } as const

test.each([
  ['balance', true],
  ['spend_limit', true],
  ['machine_lost', true],
  ['user', false],
  ['setup_failed', false],
])('a pod that ended by %s can be started again: %s', (status_reason, can) => {
  expect(canRelaunch({ ...ended, status_reason })).toBe(can)
  expect(canRelaunch({ ...ended, status_reason, status: 'switching_off' })).toBe(false)
  expect(canRelaunch({ ...ended, status_reason, relaunched_as: 'p2' })).toBe(false)
})

test('a pod whose new start failed in its set-up can be started once more', () => {
  const failed = { ...ended, status_reason: 'setup_failed', relaunch_of: 'p0' }
  expect(canRelaunch(failed)).toBe(true)
  expect(canRelaunch({ ...failed, relaunched_as: 'p2' })).toBe(false)
})

test('the same place goes before the price, and neither before what may be taken away', () => {
  const here = offer({ price: 3 })
  expect(sameAgain(pod, [offer({ country: 'DE' }), here])).toBe(here)
  expect(
    sameAgain(pod, [offer({ provider: 'Quay', country: 'DE' }), offer({ provider: 'Quay' })])?.country,
  ).toBe('US')
  expect(sameAgain(pod, [offer({ isSpot: true, price: 1 }), offer({ provider: 'Quay' })])?.isSpot).toBe(false)
})

test('another count is not the same', () => {
  expect(sameAgain(pod, [offer({ gpuCount: 4 })])).toBeNull()
  expect(sameAgain(pod, undefined)).toBeNull()
})

test.each([
  ['nobody', [], false],
  ['the pod itself', [{ id: 'p1', volume_id: 'v1', status: 'deleted' }], false],
  ['a pod that lives', [{ id: 'p2', volume_id: 'v1', status: 'ready' }], true],
  ['a pod that ends', [{ id: 'p2', volume_id: 'v1', status: 'deleting' }], true],
  ['a pod that is gone', [{ id: 'p2', volume_id: 'v1', status: 'deleted' }], false],
  ['a pod of another volume', [{ id: 'p2', volume_id: 'v2', status: 'ready' }], false],
] as const)('a volume that %s holds is taken: %s', (_, pods, taken) => {
  expect(volumeTaken({ id: 'p1', volume_id: 'v1' }, pods)).toBe(taken)
})
