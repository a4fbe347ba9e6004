import { Link } from '@tanstack/react-router'
import { clsx } from 'clsx'
import { ChevronDown, LogOut } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { signOut } from '@/api/session'
import { copy } from '@/copy/en'
import { useSession, useTeam } from '@/features/session/queries'
import { ButtonLink } from '@/ui/button-link'
import { Logo } from '@/ui/logo'
import { Spinner } from '@/ui/spinner'
import { type NavigationLink, navigation } from './navigation'
import { TeamSwitcher } from './team-switcher'
import { UpgradeBox } from './upgrade-box'
import { useReturnPath } from './use-return-path'
import { WalletBox } from './wallet-box'

const row =
  'flex min-h-9 w-full items-center gap-2.5 rounded-control px-2 py-1 text-left text-control text-mid transition-colors hover:bg-ink-2 hover:text-hi disabled:opacity-55 pointer-coarse:min-h-11'
const active =
  'data-[status=active]:bg-ink-2 data-[status=active]:font-medium data-[status=active]:text-hi data-[status=active]:[&>svg]:text-beacon'
const icon = { size: 16, strokeWidth: 1.75, 'aria-hidden': true, className: 'shrink-0' } as const

/** The content of the sidebar, beside the page or slid in over it. `children` stand beside the logo. */
export function Sidebar({ children }: { children?: ReactNode }) {
  const session = useSession()
  const { info } = useTeam()
  return (
    <div className="flex min-h-full flex-col gap-4 p-3">
      <div className="flex items-center justify-between">
        <Link to="/home" className="flex h-11 items-center gap-2.5 rounded-control px-2 text-hi">
          <Logo />
          <span className="font-semibold text-lead tracking-[-.015em]">{copy.app.name}</span>
        </Link>
        {children}
      </div>
      <nav aria-label={copy.shell.main} className="grid grid-cols-1 gap-4">
        {navigation.map((group) => (
          <Group
            key={group.title}
            title={group.title}
            links={group.links.filter((link) => !link.operator || info?.operator)}
          />
        ))}
      </nav>
      <div className="mt-auto grid grid-cols-1 gap-3 pt-2">
        {session.status === 'in' ? <UpgradeBox /> : <Invitation />}
        {session.status === 'in' ? <TeamSwitcher /> : null}
        <WalletBox />
        {session.status === 'in' ? <SignOut /> : null}
      </div>
    </div>
  )
}

function Group({ title, links }: { title: string; links: readonly NavigationLink[] }) {
  const [open, setOpen] = useState(true)
  return (
    <div>
      <button
        type="button"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
        className="group flex h-8 w-full items-center justify-between rounded-control px-2 font-medium text-low text-meta hover:text-hi"
      >
        {title}
        <ChevronDown
          size={14}
          aria-hidden="true"
          className="transition-transform group-aria-[expanded=false]:-rotate-90"
        />
      </button>
      {open ? (
        <ul className="grid grid-cols-1 gap-px">
          {links.map(({ to, label, icon: Icon, soon }) => (
            <li key={to}>
              <Link to={to} activeOptions={{ includeSearch: false }} className={clsx(row, active)}>
                <Icon {...icon} />
                <span className="min-w-0">
                  {label}
                  {soon ? (
                    <span className="-mt-px block text-[10px] text-low leading-3 tracking-[.03em]">
                      {copy.shell.comingSoon}
                    </span>
                  ) : null}
                </span>
              </Link>
            </li>
          ))}
        </ul>
      ) : null}
    </div>
  )
}

function SignOut() {
  const [busy, setBusy] = useState(false)
  return (
    <button
      type="button"
      disabled={busy}
      className={row}
      onClick={() => {
        setBusy(true)
        void signOut()
      }}
    >
      {busy ? <Spinner className="size-4 shrink-0" /> : <LogOut {...icon} />}
      {copy.shell.signOut}
    </button>
  )
}

function Invitation() {
  const back = useReturnPath()
  return (
    <section className="card p-3.5">
      <p className="text-control">{copy.shell.invitation}</p>
      <ButtonLink button to="/auth" search={back} kind="primary" size="small" wide className="mt-3">
        {copy.shell.signIn}
      </ButtonLink>
    </section>
  )
}
