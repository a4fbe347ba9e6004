import { useNavigate } from '@tanstack/react-router'
import { Check, ChevronsUpDown, Plus } from 'lucide-react'
import { copy } from '@/copy/en'
import { saveTeamChoice, useTeam } from '@/features/session/queries'
import { Badge } from '@/ui/badge'
import { Menu, MenuItem, MenuLine } from '@/ui/menu'
import { Skeleton } from '@/ui/spinner'

const reloadDelay = 100

/** The team on stage and the way to another. */
export function TeamSwitcher() {
  const navigate = useNavigate()
  const { team, info, status } = useTeam()
  if (status === 'loading') return <Skeleton className="h-11" />
  const choose = (id: string) => {
    if (id === team?.id) return
    saveTeamChoice(id)
    setTimeout(() => location.reload(), reloadDelay)
  }
  return (
    <Menu
      label={copy.shell.teams}
      note={copy.shell.signedInAs(info?.email ?? '')}
      triggerClass="flex h-11 w-full items-center gap-2 rounded-control border border-line-1 bg-ink-1 px-3 text-left text-control text-hi transition-colors hover:border-line-2 hover:bg-ink-2"
      trigger={
        <>
          <span className="min-w-0 flex-1 truncate font-medium">{team?.name ?? copy.shell.teams}</span>
          {team ? <PlanBadge plan={team.plan} /> : null}
          <ChevronsUpDown size={14} aria-hidden="true" className="shrink-0 text-low" />
        </>
      }
    >
      {(info?.teams ?? []).map((each) => (
        <MenuItem key={each.id} checked={each.id === team?.id} onSelect={() => choose(each.id)}>
          <span className="min-w-0 flex-1 truncate">{each.name}</span>
          <PlanBadge plan={each.plan} />
          <Check
            size={14}
            aria-hidden="true"
            className={each.id === team?.id ? 'text-beacon' : 'invisible'}
          />
        </MenuItem>
      ))}
      <MenuLine />
      <MenuItem onSelect={() => void navigate({ to: '/create-team' })}>
        <Plus size={15} aria-hidden="true" className="text-low" />
        {copy.shell.createNewTeam}
      </MenuItem>
    </Menu>
  )
}

function PlanBadge({ plan }: { plan: string }) {
  return plan === 'pro' ? (
    <Badge tone="beacon">{copy.shell.plan.pro}</Badge>
  ) : (
    <Badge>{copy.shell.plan.hobby}</Badge>
  )
}
