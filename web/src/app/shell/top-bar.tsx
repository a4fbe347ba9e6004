import { Link } from '@tanstack/react-router'
import { Menu as MenuIcon, X } from 'lucide-react'
import { Dialog } from 'radix-ui'
import { useState } from 'react'
import { copy } from '@/copy/en'
import { useSession } from '@/features/session/queries'
import { useBalance } from '@/features/wallet/queries'
import { formatUsd } from '@/lib/money'
import { IconButton } from '@/ui/button'
import { Backdrop } from '@/ui/dialog'
import { Logo } from '@/ui/logo'
import { Sidebar } from './sidebar'

/** The bar of narrow screens, with the sidebar behind its menu button. */
export function TopBar() {
  const [open, setOpen] = useState(false)
  const session = useSession()
  const { data } = useBalance()
  return (
    <header className="sticky top-0 z-30 flex h-14 items-center gap-1 border-line-1 border-b bg-ink-0 pr-5 pl-2 lg:hidden">
      <Dialog.Root open={open} onOpenChange={setOpen}>
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
          >
            <Dialog.Title className="sr-only">{copy.shell.menu}</Dialog.Title>
            <Sidebar onNavigate={() => setOpen(false)} />
            <Dialog.Close asChild>
              <IconButton label={copy.app.close} className="absolute top-3 right-3 size-11">
                <X size={18} aria-hidden="true" />
              </IconButton>
            </Dialog.Close>
          </Dialog.Content>
        </Dialog.Portal>
      </Dialog.Root>
      <Link to="/home" className="flex h-11 items-center gap-2.5 rounded-control px-1 text-hi">
        <Logo />
        <span className="font-semibold text-lead tracking-[-.015em]">{copy.app.name}</span>
      </Link>
      <Link
        to="/billing"
        className="price ml-auto flex h-11 items-center rounded-control px-1 font-medium text-hi"
      >
        {formatUsd(session.status === 'in' ? data?.balance : 0)}
      </Link>
    </header>
  )
}
