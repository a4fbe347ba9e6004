import { expect, test } from 'vitest'
import { isKey, keyFileName, keyOf, newKey } from './key-model'

test('a key is its mark and 32 bytes as base64url without padding', () => {
  expect(keyOf(new Uint8Array(32))).toBe(`hpk_${'A'.repeat(43)}`)
  // In plain base64 these have + and /.
  expect(keyOf(new Uint8Array(32).fill(0xff))).toBe(`hpk_${'_'.repeat(42)}8`)
  expect(keyOf(new Uint8Array(32).fill(0xfb))).toBe(`hpk_${'-_v7'.repeat(10)}-_s`)
})

test('keys read back as the bytes they were drawn from, and no two are alike', () => {
  const keys = Array.from({ length: 100 }, newKey)
  expect(new Set(keys).size).toBe(100)
  for (const key of keys) {
    expect(isKey(key)).toBe(true)
    const bytes = Uint8Array.from(Buffer.from(key.slice(4), 'base64url'))
    expect(bytes.length).toBe(32)
    expect(keyOf(bytes)).toBe(key)
  }
})

const rest = 'aZ09-_'.padEnd(43, 'k')

test.each([
  [`hpk_${rest}`, true],
  [`hpk_${rest}k`, false],
  [`hpk_${rest.slice(1)}`, false],
  [`HPK_${rest}`, false],
  [rest, false],
  [`hpk_${rest.slice(1)}=`, false],
  [`hpk_${rest.slice(1)}+`, false],
  [`hpk_${rest.slice(1)}ä`, false],
  [` hpk_${rest}`, false],
  [`hpk_${rest}\n`, false],
  ['', false],
])('%j is a key: %s', (text, is) => expect(isKey(text)).toBe(is))

test.each([
  ['datasets', 'homeport-key-datasets.txt'],
  ['my data: v2', 'homeport-key-my-data-v2.txt'],
  ['../../etc/passwd', 'homeport-key-etc-passwd.txt'],
  ['C:\\con', 'homeport-key-C-con.txt'],
  ['größe_2.1', 'homeport-key-größe_2.1.txt'],
  ['数据', 'homeport-key-数据.txt'],
  ['  ', 'homeport-key-volume.txt'],
  ['🚀', 'homeport-key-volume.txt'],
  ['x'.repeat(80), `homeport-key-${'x'.repeat(50)}.txt`],
])('the key of %j is kept in %s', (volume, name) => expect(keyFileName(volume)).toBe(name))
