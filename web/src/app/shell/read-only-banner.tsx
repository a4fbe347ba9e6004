import { useLocation } from '@tanstack/react-router'
import { Eye } from 'lucide-react'
import { copy } from '@/copy/en'
import { useSession } from '@/features/session/queries'
import { ButtonLink } from '@/ui/button-link'
import { useMedia } from '@/ui/media'
import { useReturnPath } from './use-return-path'

/** Tells visitors why they can look but not touch. */
export function ReadOnlyBanner() {
  const session = useSession()
  const { pathname } = useLocation()
  const back = useReturnPath()
  const narrow = useMedia('(max-width: 1023.98px)')
  if (session.status === 'in' || pathname === '/auth') return null
  return (
    <aside
      aria-label={copy.shell.signInOrCreate}
      className="mb-6 flex flex-wrap items-center gap-x-4 gap-y-3 rounded-card border border-line-1 bg-ink-1 px-4 py-3 text-control"
    >
      <p className="flex flex-1 basis-72 items-start gap-2.5">
        <Eye size={16} aria-hidden="true" className="mt-0.5 shrink-0 text-tide" />
        <span>{copy.shell.readOnly}</span>
      </p>
      {narrow ? (
        <ButtonLink button to="/auth" search={back} kind="primary" className="w-full sm:w-auto">
          {copy.shell.signInOrCreate}
        </ButtonLink>
      ) : null}
    </aside>
  )
}
