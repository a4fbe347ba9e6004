// @vitest-environment jsdom
import { renderHook } from '@testing-library/react'
import { expect, test, vi } from 'vitest'
import { useSession, useTeam } from './queries'

test.each([
  ['useSession', useSession],
  ['useTeam', useTeam],
])('%s throws outside its provider', (name, hook) => {
  vi.spyOn(console, 'error').mockImplementation(() => undefined) // React repeats what is thrown
  expect(() => renderHook(() => void hook())).toThrow(`${name} is used outside its provider`)
})
