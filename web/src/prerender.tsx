import { createMemoryHistory, RouterProvider } from '@tanstack/react-router'
import { renderToString } from 'react-dom/server'
import { makeRouter } from '@/app/router'

/** The HTML of the landing page as a visitor sees it before the offers are there. Run by scripts/finish.mjs. */
export async function renderLanding(): Promise<string> {
  const router = makeRouter(createMemoryHistory({ initialEntries: ['/'] }))
  await router.load()
  return renderToString(<RouterProvider router={router} />)
}
