import { ChevronDown } from 'lucide-react'
import { useId, useState } from 'react'
import { copy } from '@/copy/en'
import { formatUsd } from '@/lib/money'
import { Dot } from '@/ui/badge'
import { Button } from '@/ui/button'
import type { VolumeGroup } from './model'
import { TransactionTable } from './transaction-table'

/** Storage transactions by volume; each group opens on demand. */
export function VolumeGroups({
  groups,
  activeVolumes,
}: {
  groups: readonly VolumeGroup[]
  activeVolumes: readonly string[]
}) {
  return (
    <ul className="grid grid-cols-1 gap-3">
      {groups.map((group) => (
        <li key={group.volumeId}>
          <Group group={group} active={activeVolumes.includes(group.volumeId)} />
        </li>
      ))}
    </ul>
  )
}

function Group({ group, active }: { group: VolumeGroup; active: boolean }) {
  const [open, setOpen] = useState(false)
  const id = useId()
  const label = copy.billing.volumeGroup(group.volumeId)
  return (
    <section className="card">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2 px-5 py-3.5">
        <h3 id={id} className="num flex min-w-0 items-center gap-2.5 font-medium text-control text-hi">
          {active ? <Dot tone="tide" label={copy.billing.activeVolume} /> : null}
          <span className="wrap-anywhere">{label}</span>
        </h3>
        <span className="price ml-auto text-control">{copy.billing.total(formatUsd(group.total))}</span>
        <Button
          size="small"
          kind="ghost"
          aria-expanded={open}
          aria-describedby={id}
          icon={<ChevronDown size={14} aria-hidden="true" className={open ? 'rotate-180' : ''} />}
          onClick={() => setOpen(!open)}
        >
          {open ? copy.billing.hide : copy.billing.show}
        </Button>
      </div>
      {open ? (
        <div className="border-line-1 border-t p-3">
          <TransactionTable label={label} rows={group.rows} activePods={[]} />
        </div>
      ) : null}
    </section>
  )
}
