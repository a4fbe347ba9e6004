import type { OperatorJob, OperatorOverview } from '@/api/types'
import { copy } from '@/copy/en'
import { countText } from './model'
import { Ago, LeftOut, Nothing, Section, Words } from './parts'
import { type Column, TableOrCards } from './table'

const texts = copy.operator.job
const { heads } = texts

const columns: readonly Column<OperatorJob>[] = [
  {
    header: heads.kind,
    width: 'w-[28%]',
    cell: ({ kind }) => <span className="num wrap-anywhere text-hi">{kind}</span>,
  },
  { header: heads.last, cell: ({ last_at: at }) => (at ? <Ago at={at} /> : copy.operator.none) },
  { header: heads.next, cell: ({ next_at: at }) => (at ? <Ago at={at} /> : copy.operator.none) },
  { header: heads.retrying, right: true, cell: ({ retrying }) => countText(retrying) },
  { header: heads.givenUp, right: true, cell: ({ given_up: count }) => countText(count) },
  {
    header: heads.day,
    right: true,
    cell: ({ given_up_day: count }) => (
      <span className={count > 0 ? 'font-medium text-danger' : ''}>{countText(count)}</span>
    ),
  },
]

/** The kinds of jobs that fail, the worst first, each with its last error. */
export function Jobs({ jobs }: { jobs: OperatorOverview['jobs'] }) {
  return (
    <Section id="jobs" hint={copy.operator.hints.jobs}>
      {jobs.kinds.length === 0 ? (
        <Nothing texts={[texts.none]} />
      ) : (
        <TableOrCards
          label={copy.operator.sections.jobs}
          wide="(min-width: 768px)"
          columns={columns}
          rows={jobs.kinds}
          rowKey={({ kind }) => kind}
          note={({ last_error: error }) => (error ? <Words>{error}</Words> : null)}
        />
      )}
      <LeftOut count={jobs.kinds_left_out} />
    </Section>
  )
}
