import { Navigate, Outlet, useLocation } from '@tanstack/react-router'
import { Search } from 'lucide-react'
import { lazy, Suspense, useSyncExternalStore } from 'react'
import { onDeparture } from '@/api/session'
import { copy } from '@/copy/en'
import { NoticeBar } from '@/features/notices/notice-bar'
import { PodChime } from '@/features/pods/pod-chime'
import { useSession, useTeam } from '@/features/session/queries'
import { keyWanted } from '@/features/volumes/queries'
import { IconButton } from '@/ui/button'
import { useMedia } from '@/ui/media'
import { ModalHost } from '@/ui/modal'
import { closeModal } from '@/ui/modal-store'
import { toasts } from '@/ui/toast'
import { Toasts } from '@/ui/toasts'
import { ReadOnlyBanner } from './read-only-banner'
import { Sidebar } from './sidebar'
import '@/styles/pages.css'
import { TopBar } from './top-bar'
import { usePalette } from './use-palette'
import { useSecondaryLists } from './use-secondary-lists'

// What is on show was meant for whoever is gone now.
onDeparture(() => {
  closeModal()
  keyWanted.set(null)
  toasts.set([])
})

const Palette = lazy(() => import('./palette'))
const UnlockDialog = lazy(() => import('@/features/volumes/unlock-dialog'))

/** The frame of every page but the landing page. */
export function Shell() {
  const session = useSession()
  const { status, info } = useTeam()
  const { pathname } = useLocation()
  const wide = useMedia('(min-width: 1024px)')
  const secondary = useSecondaryLists()
  const palette = usePalette()
  const wanted = useSyncExternalStore(keyWanted.watch, keyWanted.get)
  if (session.status === 'in' && status === 'none' && info && pathname !== '/create-team') {
    return <Navigate to="/create-team" replace />
  }
  return (
    <div className="min-h-dvh lg:grid lg:grid-cols-[248px_minmax(0,1fr)]">
      <a
        href="#main"
        className="sr-only z-60 rounded-control bg-beacon px-4 py-2 font-medium text-on-beacon focus:not-sr-only focus:fixed focus:top-3 focus:left-3"
      >
        {copy.app.skip}
      </a>
      {wide ? (
        <aside className="border-line-1 border-r">
          <div className="sticky top-0 h-dvh overflow-y-auto">
            <Sidebar>
              <IconButton
                label={copy.shell.palette}
                title={copy.shell.paletteHint}
                aria-keyshortcuts="Control+K Meta+K"
                onClick={palette.show}
              >
                <Search size={15} aria-hidden="true" />
              </IconButton>
            </Sidebar>
          </div>
        </aside>
      ) : (
        <TopBar />
      )}
      <main id="main" tabIndex={-1} className="min-w-0 px-5 pt-6 pb-16 sm:px-8 lg:pt-8">
        <div className="mx-auto max-w-[1120px]">
          <ReadOnlyBanner />
          <NoticeBar enabled={secondary} />
          <Outlet />
        </div>
      </main>
      <PodChime enabled={secondary || pathname === '/pods'} />
      <Suspense>{palette.wanted ? <Palette open={palette.open} onClose={palette.close} /> : null}</Suspense>
      <Suspense>{wanted ? <UnlockDialog {...wanted} /> : null}</Suspense>
      <ModalHost closeLabel={copy.app.close} />
      <Toasts label={copy.app.messages} closeLabel={copy.app.close} />
    </div>
  )
}
