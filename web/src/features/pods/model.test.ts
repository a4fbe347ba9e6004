import { describe, expect, test } from 'vitest'
import type { CreatePod, Pod } from '@/api/types'
import {
  awaitsRelaunch,
  becameReady,
  countAndType,
  deleteBlock,
  endOf,
  shouldPoll,
  sshCommand,
  tempPod,
  transferOf,
  uptimeOf,
  withPending,
} from './model'

const order: CreatePod = {
  volume_id: 'v',
  ssh_key_id: 'k',
  team_id: 't',
  cloud_id: 'c',
  gpu_type: 'A100_80GB',
  socket: 'SXM4',
  country: 'US',
  gpu_count: 2,
  gpu_memory: 160,
  vcpu: 28,
  memory: 240,
  price: 2.64,
  currency: 'USD',
  default_disk_size: 640,
  disk_price: null,
  security: 'secure',
  provider: 'p',
  is_spot: false,
  data_center_id: null,
  image: 'i',
}
const born = '2026-01-01T00:00:00.000Z'
const pod = (over: Partial<Pod> = {}): Pod => ({
  ...tempPod(order, 1, 'u', new Date(born)),
  id: 'real',
  ...over,
})

describe('the SSH command', () => {
  const ready = { id: '9f3c1a77-aaaa-4bbb-8ccc-0123456789ab', ssh_port: 30412, ssh_host: 'pods.example' }
  test('names the port and the first segment of the id', () => {
    expect(sshCommand(ready, 'other')).toBe('ssh -p 30412 root@9f3c1a77.pods.example')
  })
  test('falls back on the configured host and never doubles the segment', () => {
    expect(sshCommand({ ...ready, ssh_host: '' }, 'localhost')).toBe('ssh -p 30412 root@9f3c1a77.localhost')
    expect(sshCommand({ ...ready, ssh_host: '9f3c1a77.x.test' }, '')).toBe(
      'ssh -p 30412 root@9f3c1a77.x.test',
    )
  })
  test('is not there before the port is', () => {
    expect(sshCommand({ ...ready, ssh_port: null }, 'other')).toBeNull()
  })
})

test('the list is polled while a pod is on its way, not for ready and deleted ones', () => {
  const [ready, deleted] = [pod({ status: 'ready' }), pod({ status: 'deleted', ended_at: born })]
  expect(shouldPoll([ready, deleted])).toBe(false)
  expect(shouldPoll([ready, pod({ status: 'switching_off' })])).toBe(true)
  expect(shouldPoll(undefined)).toBe(false)
})

const lost = pod({ status: 'deleted', status_reason: 'machine_lost', auto_relaunch: true, ended_at: born })

test.each([
  ['a lost pod for which the server looks', { ...lost, relaunch_pending: true }, true],
  ['one that the server has given up', lost, false],
  ['one that is not to be started again', { ...lost, relaunch_pending: true, auto_relaunch: false }, false],
] as const)('%s is waited for: %#', (_, row, waits) => {
  expect(awaitsRelaunch(row)).toBe(waits)
  expect(shouldPoll([row])).toBe(waits)
})

test.each([
  ['real', 'ready', null],
  ['real', 'pending', null],
  ['real', 'deleting', 'deleting'],
  ['real', 'deleted', 'deleted'],
  ['real', 'switching_off', 'switching_off'],
  ['temp-1', 'pending', 'temp'],
] as const)('deleting %s while %s is blocked by %s', (id, status, block) => {
  expect(deleteBlock({ id, status })).toBe(block)
})

test('a refresh keeps the pods whose order is under way', () => {
  const temp = pod({ id: 'temp-7', created_at: '2026-01-02T00:00:00Z' })
  const old = pod({ id: 'a' })
  const rows = withPending([temp, pod({ id: 'gone' })], [old], new Set())
  expect(rows.map(({ id }) => id)).toEqual(['temp-7', 'a'])
})

test.each([
  ['ready', 'deleting'],
  ['mounting', 'deleting'],
  ['switching_off', 'switching_off'],
  ['deleted', 'deleted'],
] as const)(
  'a refresh that calls a pod %s while its deletion is under way shows it as %s',
  (status, shown) => {
    const rows = withPending(
      undefined,
      [pod({ status }), pod({ id: 'other', status: 'ready' })],
      new Set(['real']),
    )
    expect(rows.map((row) => row.status)).toEqual([shown, 'ready'])
  },
)

test.each([
  ['switching_off', 'balance', { reason: 'balance', next: '/billing' }],
  ['deleted', 'spend_limit', { reason: 'spend_limit', next: '/billing' }],
  ['deleted', 'setup_failed', { reason: 'setup_failed', next: '/create' }],
  ['deleted', 'machine_lost', { reason: 'machine_lost', next: '/create' }],
  ['deleted', 'volume_damaged', { reason: 'volume_damaged', next: '/storage' }],
  ['deleted', 'user', { reason: 'user', next: null }],
  ['deleted', 'constructor', null],
  ['deleted', '', null],
  ['deleting', 'user', null],
  ['ready', 'balance', null],
] as const)('a pod %s for %s explains itself', (status, status_reason, end) => {
  expect(endOf({ status, status_reason })).toEqual(end)
})

test.each([
  ['pending', null, 0, null],
  ['mounting', null, 0, { kind: 'restore', percent: 0 }],
  ['mounting', null, 61, { kind: 'restore', percent: 61 }],
  ['mounting', null, 130, { kind: 'restore', percent: 100 }],
  ['ready', born, 100, null],
  ['deleting', born, 40, { kind: 'finalSync', percent: 40 }],
  ['switching_off', born, 0, { kind: 'finalSync', percent: 0 }],
  ['deleting', null, 0, null],
  ['deleted', born, 100, null],
] as const)('%s, ready at %s, %i %% done', (status, ready_at, progress, transfer) => {
  expect(transferOf({ status, ready_at, progress })).toEqual(transfer)
})

test('only a pod that was coming becomes ready', () => {
  const before = [pod({ id: 'a', status: 'mounting' }), pod({ id: 'b', status: 'ready' })]
  const after = [
    pod({ id: 'a', status: 'ready' }),
    pod({ id: 'b', status: 'ready' }),
    pod({ id: 'c', status: 'ready' }),
  ]
  expect(becameReady(before, after).map(({ id }) => id)).toEqual(['a'])
})

test('the uptime of an ended pod stands still', () => {
  const now = Date.parse(born) + 90_000
  expect(uptimeOf(pod(), now)).toBe(90_000)
  expect(uptimeOf(pod({ ended_at: '2026-01-01T00:00:30Z' }), now)).toBe(30_000)
})

test('messages name a configuration as count and type', () => {
  expect(countAndType(pod())).toBe('2xA100_80GB')
})
