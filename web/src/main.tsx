import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { onDeparture, sessionState, startSession, watchSession } from '@/api/session'
import { ErrorBoundary } from '@/app/application-error'
import { focusHeading } from '@/app/focus-heading'
import { installGlobalErrors } from '@/app/global-errors'
import { queryClient } from '@/app/query-client'
import { makeRouter } from '@/app/router'
import './styles/landing.css'

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

// The landing page is prerendered: it is replaced in one step, when everything it needs is here.
await router.load()
const container = document.getElementById('root')
if (!container) throw new Error('index.html has no #root')
createRoot(container).render(
  <StrictMode>
    <ErrorBoundary>
      <RouterProvider router={router} />
    </ErrorBoundary>
  </StrictMode>,
)
