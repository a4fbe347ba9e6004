import { createMemoryHistory, RouterProvider } from '@tanstack/react-router'
import { renderToString } from 'react-dom/server'
import { makeRouter } from '@/app/router'
import { provideVoices } from '@/features/landing/voices'

// The server puts the operator's testimonials in the place of these (internal/app/testimonials.go).
const places = [1, 2, 3].map((n) => ({ quote: `@@quote${n}@@`, name: `@@name${n}@@`, work: `@@work${n}@@` }))

/**
 * The HTML of the landing page as a visitor sees it before the offers are there: with the sample testimonials,
 * or with places for the operator's. Run by scripts/finish.mjs.
 */
export async function renderLanding(testimonials: 'samples' | 'places'): Promise<string> {
  provideVoices(testimonials === 'places' ? places : null)
  const router = makeRouter(createMemoryHistory({ initialEntries: ['/'] }))
  await router.load()
  return renderToString(<RouterProvider router={router} />)
}
