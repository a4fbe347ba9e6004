import { Link, useLocation } from '@tanstack/react-router'
import { Menu as MenuIcon, X } from 'lucide-react'
import { Dialog } from 'radix-ui'
import { type MouseEvent, useRef, useState } from 'react'
import { copy } from '@/copy/en'
import { useWalletView } from '@/features/wallet/queries'
import { IconButton } from '@/ui/button'
import { Backdrop } from '@/ui/dialog'
import { Logo } from '@/ui/logo'
import { focusHeading } from '../focus-heading'
import { Sidebar } from './sidebar'
import { WalletAmount } from './wallet-amount'

/** The bar of narrow screens, with the sidebar behind its menu button. */
export function TopBar() {
  const wallet = useWalletView()
  return (
    <header className="sticky top-0 z-30 flex h-14 items-center gap-1 border-line-1 border-b bg-ink-0 pr-5 pl-2 lg:hidden">
      <Drawer />
      <Link to="/home" className="flex h-11 items-center gap-2.5 rounded-control px-1 text-hi">
        <Logo />
        <span className="font-semibold text-lead tracking-[-.015em]">{copy.app.name}</span>
      </Link>
      <Link
        to="/billing"
        className="price ml-auto flex h-11 items-center rounded-control px-1 font-medium text-hi"
      >
        <span className="sr-only">{copy.wallet.title}</span>
        <WalletAmount view={wallet} />
      </Link>
    </header>
  )
}

/** The sidebar, slid in over the page. Whatever leads to another page closes it. */
function Drawer() {
  const { href, pathname } = useLocation()
  const [open, setOpen] = useState(false)
  const [shownOn, setShownOn] = useState(href)
  const openedOn = useRef(pathname)
  if (shownOn !== href) {
    setShownOn(href)
    setOpen(false)
  }
  return (
    <Dialog.Root
      open={open}
      onOpenChange={(next) => {
        openedOn.current = location.pathname
        setOpen(next)
      }}
    >
      <Dialog.Trigger asChild>
        <IconButton label={copy.shell.openMenu} className="size-11">
          <MenuIcon size={20} aria-hidden="true" />
        </IconButton>
      </Dialog.Trigger>
      <Dialog.Portal>
        <Backdrop />
        <Dialog.Content
          aria-modal="true"
          aria-describedby={undefined}
          className="fixed inset-y-0 left-0 z-50 w-[300px] max-w-[88vw] animate-slide overflow-y-auto border-line-2 border-r bg-ink-0 shadow-overlay"
          onClick={(event) => {
            if (isTap(event)) setOpen(false)
          }}
          onEscapeKeyDown={(event) => {
            // The first Esc closes the open menu only.
            if (event.target instanceof Element && event.target.closest('[role=menu]')) event.preventDefault()
          }}
          onCloseAutoFocus={(event) => {
            // The focus goes back to the menu button, but from a new page to its heading: the drawer, while it
            // was there, may have drawn it away from that.
            if (location.pathname === openedOn.current) return
            event.preventDefault()
            focusHeading()
          }}
        >
          <Dialog.Title className="sr-only">{copy.shell.menu}</Dialog.Title>
          <Sidebar />
          <Dialog.Close asChild>
            <IconButton label={copy.app.close} className="absolute top-3 right-3 size-11">
              <X size={18} aria-hidden="true" />
            </IconButton>
          </Dialog.Close>
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  )
}

/** A click that follows a link here; one that opens a new tab leaves the drawer as it is. */
function isTap(event: MouseEvent): boolean {
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return false
  return event.target instanceof Element && event.target.closest('a[href]') !== null
}
