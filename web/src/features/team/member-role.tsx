import { clsx } from 'clsx'
import { ChevronDown } from 'lucide-react'
import type { ChangeEvent } from 'react'
import type { Member, Team } from '@/api/types'
import { copy } from '@/copy/en'
import { openModal } from '@/ui/modal-store'
import { useSetRole } from './queries'

const roles: readonly Member['role'][] = ['admin', 'member', 'viewer']

/** A member's role; admins can change that of the others. */
export function MemberRole({ team, member, own }: { team: Team; member: Member; own: boolean }) {
  const { mutate } = useSetRole(team.id)
  const name = (
    <span
      className={clsx(
        'font-medium text-meta tracking-[.03em]',
        member.role === 'admin' ? 'text-beacon' : 'text-tide',
      )}
    >
      {member.role.toUpperCase()}
    </span>
  )
  if (own || team.is_personal || team.role !== 'admin') return <span className="sm:pr-6.5">{name}</span>
  // The arrow keys change a closed select: nothing happens before it is confirmed.
  const ask = (event: ChangeEvent<HTMLSelectElement>) => {
    const role = roles.find((each) => each === event.target.value)
    if (!role || role === member.role) return
    openModal({
      type: 'info',
      title: copy.teams.roleTitle,
      message: copy.teams.roleMessage(member.email, copy.teams.roleArticle[role]),
      actions: [
        { label: copy.app.cancel },
        { label: copy.teams.roleChange, variant: 'primary', onClick: () => mutate({ member, role }) },
      ],
    })
  }
  return (
    <span className="relative inline-flex min-h-8 max-sm:-ml-2 items-center gap-1 rounded-control px-2 text-low transition-colors hover:bg-ink-3 has-focus-visible:bg-ink-3 pointer-coarse:min-h-11">
      {name}
      <ChevronDown size={14} aria-hidden="true" />
      {/* The platform's own list, drawn as the word of the role. */}
      <select
        aria-label={copy.teams.roleOf(member.email)}
        value={member.role}
        onChange={ask}
        className="absolute inset-0 appearance-none rounded-control bg-transparent text-transparent"
      >
        {roles.map((role) => (
          <option key={role} value={role} className="bg-ink-2 text-hi">
            {copy.teams.roles[role]}
          </option>
        ))}
      </select>
    </span>
  )
}
