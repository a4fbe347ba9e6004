import { expect, test } from 'vitest'
import { keyProblem, shownKey } from './model'

test('the first 50 characters of a key are shown, its type among them', () => {
  const key = `ssh-ed25519 ${'A'.repeat(68)} laptop`
  expect(shownKey(key)).toBe(`ssh-ed25519 ${'A'.repeat(38)}`)
  expect(shownKey(key)).toHaveLength(50)
  expect(shownKey('ssh-rsa AAAA')).toBe('ssh-rsa AAAA')
})

test.each([
  ['', 'required'],
  [' \n\t ', 'required'],
  ['-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl', 'private'],
  ['  -----BEGIN RSA PRIVATE KEY-----', 'private'],
  ['ssh-ed25519 AAAA laptop', null],
  ['not a key', null],
] as const)('%j is %s', (text, problem) => expect(keyProblem(text)).toBe(problem))
