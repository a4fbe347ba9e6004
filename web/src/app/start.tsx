import { RouterProvider } from '@tanstack/react-router'
import { StrictMode, startTransition } from 'react'
import { onDeparture, sessionState, startSession, watchSession } from '@/api/session'
import { ErrorBoundary } from './application-error'
import { focusHeading } from './focus-heading'
import { installGlobalErrors } from './global-errors'
import { queryClient } from './query-client'
import { makeRouter } from './router'
import { TakeOver } from './take-over'

/** Makes the router and lets the session begin. Nothing is drawn yet. */
export function prepare(): ReturnType<typeof makeRouter> {
  installGlobalErrors()
  const router = makeRouter()
  onDeparture(() => queryClient.clear())
  void startSession(window.homeportBoot)

  let known = sessionState().status !== 'loading'
  watchSession(() => {
    // The guards of / and /auth look again when somebody signs in or out, here or in another tab.
    if (known) void router.invalidate()
    known = true
  })

  router.subscribe('onRendered', ({ fromLocation, pathChanged }) => {
    if (fromLocation && pathChanged) focusHeading()
  })
  return router
}

/** Draws the page. A prerendered one is replaced in one step, when everything it needs is here. */
export async function show(router: ReturnType<typeof makeRouter>): Promise<void> {
  // By itself react-dom is the longest part of the start: imported here, it runs in a task of its own.
  const [{ createRoot }] = await Promise.all([import('react-dom/client'), router.load()])
  const container = document.getElementById('root')
  if (!container) throw new Error('index.html has no #root')
  const fresh = container.cloneNode() as HTMLElement
  const root = createRoot(fresh)
  // As a transition React draws in small steps, between which the reader's taps and scrolling have their turn.
  startTransition(() =>
    root.render(
      <StrictMode>
        <TakeOver old={container} fresh={fresh}>
          <ErrorBoundary>
            <RouterProvider router={router} />
          </ErrorBoundary>
        </TakeOver>
      </StrictMode>,
    ),
  )
}
