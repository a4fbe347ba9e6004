import { expect, test } from 'vitest'
import { onceKeys } from './once'

test('the same request has the same key until it is done', () => {
  const keys = onceKeys()
  const first = keys.of({ amount: 5 })
  expect(first).toMatch(/^[0-9a-f]{32}$/)
  expect(keys.of({ amount: 5 })).toBe(first)
  keys.forget()
  expect(keys.of({ amount: 5 })).not.toBe(first)
})

test('another content and another form have keys of their own', () => {
  const keys = onceKeys()
  const first = keys.of({ amount: 5 })
  const second = keys.of({ amount: 25 })
  expect(second).not.toBe(first)
  expect(keys.of({ amount: 5 })).not.toBe(first)
  expect(onceKeys().of({ amount: 25 })).not.toBe(second)
})
