import { expect, test } from 'vitest'
import { address } from './client'
import { ApiError, detailOf, reasonOf, retryRead } from './error'

test('addresses are filled and quoted', () => {
  expect(address('/pods/{id}', { path: { id: 'a/b' }, query: { team_id: 't 1', deleted: undefined } })).toBe(
    '/pods/a%2Fb?team_id=t+1',
  )
  expect(address('/user/info', {})).toBe('/user/info')
})

test('a refusal carries the sentence of the server, a dead network the fallback', () => {
  const refusal = new ApiError(409, { detail: 'Volume is in use', code: 'volume_in_use' })
  expect([refusal.status, refusal.code, detailOf(refusal, 'x')]).toEqual([
    409,
    'volume_in_use',
    'Volume is in use',
  ])
  expect(detailOf(new ApiError(500, '<html>'), 'x')).toBe('x')
  expect(detailOf(new TypeError('Failed to fetch'), 'x')).toBe('x')
})

test('a refusal without a sentence is told from no refusal', () => {
  expect(reasonOf(null)).toBeUndefined()
  expect(reasonOf(new ApiError(500, {}))).toBeNull()
  expect(reasonOf(new ApiError(429, { detail: 'Too many requests.' }))).toBe('Too many requests.')
  expect(reasonOf(new TypeError('Failed to fetch'))).toBe(
    'Homeport cannot be reached. Check your connection.',
  )
})

test('reads are tried twice, refused ones once', () => {
  expect(retryRead(0, new ApiError(404, null))).toBe(false)
  expect(retryRead(0, new ApiError(503, null))).toBe(true)
  expect(retryRead(1, new TypeError('network'))).toBe(false)
})
