import { useNavigate } from '@tanstack/react-router'
import { Command } from 'cmdk'
import { Copy, type LucideIcon, Plus, RefreshCw, Users } from 'lucide-react'
import type { ReactNode } from 'react'
import { copy } from '@/copy/en'
import { useResources } from '@/features/offers/queries'
import { copyCommand } from '@/features/pods/copy-command'
import { sshCommand } from '@/features/pods/model'
import { usePods } from '@/features/pods/queries'
import { useTeam } from '@/features/session/queries'
import { useRefreshWallet } from '@/features/wallet/queries'
import { formatRate } from '@/lib/money'
import { gpuName } from '@/lib/names'
import { rankTypes } from '@/lib/offers'
import { Dialog } from '@/ui/dialog'
import { navigation } from './navigation'
import { switchTeam } from './switch-team'

/** Everything by typing: the pages, the teams, the ready pods. Loaded when it is opened first. */
export default function Palette({ open, onClose }: { open: boolean; onClose: () => void }) {
  const navigate = useNavigate()
  const { team, info } = useTeam()
  const { data: pods } = usePods(open)
  const { data: resources } = useResources()
  const gpus = rankTypes(resources ?? {})
  const refresh = useRefreshWallet()
  const run = (action: () => void) => () => {
    onClose()
    action()
  }
  const others = (info?.teams ?? []).filter((each) => each.id !== team?.id)
  const ready = (pods ?? []).filter((pod) => pod.status === 'ready' && pod.ssh_port !== null)
  return (
    <Dialog open={open} onClose={onClose} title={copy.shell.palette} closeLabel={copy.app.close} width="wide">
      <Command label={copy.shell.palette}>
        <Command.Input
          placeholder={copy.palette.placeholder}
          className="h-11 w-full rounded-control border border-line-3 bg-ink-0 px-3 text-hi placeholder:text-low"
        />
        <Command.List className="mt-3 max-h-[60dvh] overflow-y-auto">
          <Command.Empty className="px-2 py-6 text-center text-low">{copy.palette.none}</Command.Empty>
          <Group heading={copy.palette.pages}>
            {navigation.flatMap(({ links }) =>
              links
                .filter((link) => !link.operator || info?.operator)
                .map(({ to, label, icon }) => (
                  <Item key={to} value={label} icon={icon} onSelect={run(() => void navigate({ to }))}>
                    {label}
                  </Item>
                )),
            )}
          </Group>
          {ready.length > 0 ? (
            <Group heading={copy.palette.pods}>
              {ready.map((pod) => (
                <Item
                  key={pod.id}
                  value={`ssh ${pod.gpu_type} ${pod.id}`}
                  icon={Copy}
                  onSelect={run(() => void copyCommand(sshCommand(pod, location.hostname) ?? ''))}
                >
                  {pod.gpu_count}x {gpuName(pod.gpu_type)}
                  <span className="num text-low">{pod.id.split('-')[0]}</span>
                </Item>
              ))}
            </Group>
          ) : null}
          {gpus.length > 0 ? (
            <Group heading={copy.palette.gpus}>
              {gpus.map(({ type, minPrice }) => (
                <Item
                  key={type}
                  value={`gpu ${type} ${gpuName(type)}`}
                  icon={Plus}
                  onSelect={run(() => void navigate({ to: '/create', search: { gpu: type } }))}
                >
                  {gpuName(type)}
                  {minPrice === null ? null : (
                    <span className="price ml-auto text-low text-meta">
                      {formatRate(minPrice)}
                      {copy.create.perGpuHour}
                    </span>
                  )}
                </Item>
              ))}
            </Group>
          ) : null}
          {others.length > 0 ? (
            <Group heading={copy.palette.teams}>
              {others.map(({ id, name }) => (
                <Item key={id} value={`team ${name} ${id}`} icon={Users} onSelect={run(() => switchTeam(id))}>
                  <span className="min-w-0 truncate">{name}</span>
                </Item>
              ))}
            </Group>
          ) : null}
          {team ? (
            <Group heading={copy.palette.actions}>
              <Item value={copy.wallet.refresh} icon={RefreshCw} onSelect={run(() => void refresh())}>
                {copy.wallet.refresh}
              </Item>
            </Group>
          ) : null}
        </Command.List>
      </Command>
    </Dialog>
  )
}

function Group({ heading, children }: { heading: string; children: ReactNode }) {
  return (
    <Command.Group heading={heading} className="palette-group">
      {children}
    </Command.Group>
  )
}

interface ItemProps {
  value: string
  icon: LucideIcon
  onSelect: () => void
  children: ReactNode
}

function Item({ value, icon: Icon, onSelect, children }: ItemProps) {
  return (
    <Command.Item
      value={value}
      onSelect={onSelect}
      className="flex min-h-9 cursor-pointer items-center gap-2.5 rounded-control px-2.5 text-hi data-[selected=true]:bg-ink-3"
    >
      <Icon size={16} aria-hidden="true" className="shrink-0 text-low" />
      {children}
    </Command.Item>
  )
}
