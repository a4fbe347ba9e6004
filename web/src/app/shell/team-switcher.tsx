import { useNavigate } from '@tanstack/react-router'
import { Check, ChevronsUpDown, Plus } from 'lucide-react'
import { copy } from '@/copy/en'
import { isPro } from '@/features/session/model'
import { useTeam } from '@/features/session/queries'
import { Badge } from '@/ui/badge'
import { Menu, MenuItem, MenuLine } from '@/ui/menu'
import { Skeleton } from '@/ui/spinner'
import { switchTeam } from './switch-team'

/** The team on stage and the way to another. */
export function TeamSwitcher() {
  const navigate = useNavigate()
  const { team, info, status } = useTeam()
  if (status === 'loading') return <Skeleton className="h-11" />
  return (
    <Menu
      label={copy.shell.teams}
      note={copy.shell.signedInAs(info?.email ?? '')}
      triggerClass="flex h-11 w-full items-center gap-2 rounded-control border border-line-1 bg-ink-1 px-3 text-left text-control text-hi transition-colors hover:border-line-2 hover:bg-ink-2"
      trigger={
        <>
          {team ? <span className="sr-only">{copy.shell.team}</span> : null}
          <TeamName name={team?.name ?? copy.shell.teams} />
          {team ? <PlanBadge pro={isPro(team)} /> : null}
          <ChevronsUpDown size={14} aria-hidden="true" className="shrink-0 text-low" />
        </>
      }
    >
      {(info?.teams ?? []).map((each) => {
        const current = each.id === team?.id
        return (
          <MenuItem
            key={each.id}
            checked={current}
            onSelect={() => (current ? undefined : switchTeam(each.id))}
          >
            <TeamName name={each.name} />
            <PlanBadge pro={isPro(each)} />
            <Check
              size={14}
              aria-hidden="true"
              className={current ? 'shrink-0 text-beacon' : 'invisible shrink-0'}
            />
          </MenuItem>
        )
      })}
      <MenuLine />
      <MenuItem onSelect={() => void navigate({ to: '/create-team' })}>
        <Plus size={15} aria-hidden="true" className="text-low" />
        {copy.shell.createNewTeam}
      </MenuItem>
    </Menu>
  )
}

/** Cut where it does not fit; the whole of it is in the title. */
function TeamName({ name }: { name: string }) {
  return (
    <span title={name} className="min-w-0 flex-1 truncate font-medium">
      {name}
    </span>
  )
}

function PlanBadge({ pro }: { pro: boolean }) {
  if (pro) return <Badge tone="beacon">{copy.shell.plan.pro}</Badge>
  return <Badge className="border border-line-2">{copy.shell.plan.hobby}</Badge>
}
