// @vitest-environment jsdom
import { createMemoryHistory, createRootRoute, createRouter, RouterProvider } from '@tanstack/react-router'
import { cleanup, render, screen } from '@testing-library/react'
import { afterEach, expect, test, vi } from 'vitest'
import { DevUi } from './dev-ui'

afterEach(cleanup)

test('every part of src/ui is on show', { timeout: 30_000 }, async () => {
  vi.stubGlobal('matchMedia', () => ({
    matches: true,
    addEventListener: vi.fn(),
    removeEventListener: vi.fn(),
  }))
  vi.stubGlobal('scrollTo', vi.fn())
  const router = createRouter({
    routeTree: createRootRoute({ component: DevUi }),
    history: createMemoryHistory({ initialEntries: ['/'] }),
  })
  render(<RouterProvider router={router} />)
  await screen.findByRole('heading', { level: 1, name: 'Parts' }, { timeout: 20_000 })
  const shown = [...document.querySelectorAll('[data-part]')].map((each) => each.getAttribute('data-part'))
  const parts = Object.keys(import.meta.glob(['../../ui/*.tsx', '!../../ui/*.test.tsx'])).map(
    (path) => /([\w-]+)\.tsx$/.exec(path)?.[1],
  )
  expect(parts.length).toBeGreaterThan(15)
  expect(shown).toEqual(expect.arrayContaining(parts))
})
