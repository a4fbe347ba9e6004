import type { OperatorOrphan, OperatorOverview, OperatorTroubled } from '@/api/types'
import { copy } from '@/copy/en'
import { formatRate } from '@/lib/money'
import { gpuName, nameOf } from '@/lib/names'
import { Notice } from '@/ui/notice'
import { countText } from './model'
import { Ago, type Figure, Figures, Group, LeftOut, Nothing, Quiet, Section, Words } from './parts'
import { type Column, TableOrCards } from './table'

const texts = copy.operator.machine
const { heads, tiles } = texts
const wide = '(min-width: 768px)'

const orphanColumns: readonly Column<OperatorOrphan>[] = [
  {
    header: heads.machine,
    width: 'w-[46%]',
    cell: ({ name, ref }) => (
      <>
        <div className="num wrap-anywhere text-hi">{name || texts.noName}</div>
        <Quiet className="num wrap-anywhere">{ref}</Quiet>
      </>
    ),
  },
  { header: heads.cloud, cell: ({ provider }) => nameOf(provider) },
  { header: heads.age, cell: ({ first_seen_at: at }) => <Ago at={at} /> },
]

const troubledColumns: readonly Column<OperatorTroubled>[] = [
  {
    header: heads.machine,
    width: 'w-[22%]',
    cell: ({ name, gpu_type: type, gpu_count: count }) => (
      <>
        <div className="num wrap-anywhere text-hi">{name}</div>
        <Quiet>
          {count}x {gpuName(type)}
        </Quiet>
      </>
    ),
  },
  {
    header: heads.cloud,
    width: 'w-[11%]',
    cell: ({ provider, cloud }) => (
      <>
        {nameOf(provider)}
        {cloud === provider ? null : <Quiet>{nameOf(cloud)}</Quiet>}
      </>
    ),
  },
  { header: heads.age, width: 'w-[13%]', cell: ({ since }) => <Ago at={since} /> },
  {
    header: heads.pod,
    cell: ({ pod_id: id, pod_status: status }) => (
      <>
        <div className="num wrap-anywhere text-meta">{id}</div>
        <Quiet>{nameOf(status)}</Quiet>
      </>
    ),
  },
  {
    header: heads.tries,
    width: 'w-[13%]',
    cell: ({ tries, next_at: next }) => (
      <>
        <span className="price">{countText(tries)}</span>
        {next ? (
          <Quiet>
            {texts.next} <Ago at={next} />
          </Quiet>
        ) : null}
      </>
    ),
  },
  {
    header: heads.burn,
    width: 'w-[13%]',
    right: true,
    cell: ({ burn_per_hour: burn }) => <span className="text-hi">{formatRate(burn)}</span>,
  },
]

/** What the clouds run for us: counts, and the machines that cost without serving anybody. */
export function Machines({ instances }: { instances: OperatorOverview['instances'] }) {
  const { orphan_list: orphans, troubled, reaper } = instances
  const terminating = troubled.filter(({ state }) => state === 'terminating')
  const ambiguous = troubled.filter(({ state }) => state === 'ambiguous')
  const lastSyncs = troubled.filter(({ state }) => state === 'running')
  const lists = [orphans, terminating, ambiguous]
  const nothing = [texts.noOrphans, texts.noTerminating, texts.noAmbiguous]
  return (
    <Section id="machines" hint={copy.operator.hints.machines}>
      <Figures figures={figuresOf(instances)} className="grid-cols-2 sm:grid-cols-4 xl:grid-cols-7" />
      {reaper.armed ? null : (
        <Notice tone="danger">
          {texts.unarmed}
          {reaper.restored_at ? (
            <Quiet>
              {texts.restored} <Ago at={reaper.restored_at} />
            </Quiet>
          ) : null}
        </Notice>
      )}
      {orphans.length > 0 ? (
        <Group title={texts.orphans}>
          <TableOrCards
            label={texts.orphans}
            wide={wide}
            columns={orphanColumns}
            rows={orphans}
            rowKey={({ provider, ref }) => `${provider} ${ref}`}
          />
          <LeftOut count={instances.orphans_left_out} />
        </Group>
      ) : null}
      <Troubled title={texts.terminating} machines={terminating} />
      <Troubled title={texts.ambiguous} machines={ambiguous} />
      <Troubled title={texts.lastSyncs} machines={lastSyncs} />
      <LeftOut count={instances.troubled_left_out} />
      <Nothing texts={nothing.filter((_, index) => lists[index]?.length === 0)} />
    </Section>
  )
}

function figuresOf(instances: OperatorOverview['instances']): Figure[] {
  const { open } = instances
  return [
    { label: tiles.pods, value: countText(instances.pods) },
    { label: tiles.running, value: countText(open.running) },
    { label: tiles.intent, value: countText(open.intent) },
    { label: tiles.ambiguous, value: countText(open.ambiguous), bad: instances.ambiguous_long > 0 },
    { label: tiles.terminating, value: countText(open.terminating), bad: instances.terminating_long > 0 },
    { label: tiles.withoutPod, value: countText(instances.without_pod) },
    { label: tiles.orphans, value: countText(instances.orphans), bad: instances.orphans > 0 },
  ]
}

function Troubled({ title, machines }: { title: string; machines: readonly OperatorTroubled[] }) {
  if (machines.length === 0) return null
  return (
    <Group title={title}>
      <TableOrCards
        label={title}
        wide={wide}
        columns={troubledColumns}
        rows={machines}
        rowKey={({ name }) => name}
        note={({ reason }) => (reason ? <Words>{reason}</Words> : null)}
      />
    </Group>
  )
}
