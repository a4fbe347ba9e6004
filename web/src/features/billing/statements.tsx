import { useQuery } from '@tanstack/react-query'
import { FileText, Sheet } from 'lucide-react'
import { useState } from 'react'
import { reasonOf } from '@/api/error'
import type { Statement } from '@/api/types'
import { copy } from '@/copy/en'
import { formatUsd } from '@/lib/money'
import { monthName } from '@/lib/month'
import { Badge } from '@/ui/badge'
import { Button } from '@/ui/button'
import { ListError } from '@/ui/list-error'
import { Skeleton } from '@/ui/spinner'
import { phaseOf } from './model'
import { MonthDialog } from './month-dialog'
import { statementsQuery, useStatementFile } from './statement-queries'

const texts = copy.statements
const shownAtFirst = 4

/** A statement for each month of the wallet, to keep as a file. */
export function Statements({ teamId }: { teamId: string }) {
  const list = useQuery(statementsQuery(teamId))
  const [all, setAll] = useState(false)
  const months = list.data ?? []
  return (
    <section aria-label={texts.title}>
      <h2 className="font-semibold text-card">{texts.title}</h2>
      <p className="mt-1 mb-4 text-low text-meta">{texts.hint}</p>
      {phaseOf(list) === 'first' ? <Skeleton className="h-16 rounded-card" /> : null}
      {phaseOf(list) === 'failed' ? (
        <ListError
          text={texts.failed}
          detail={reasonOf(list.error)}
          busy={list.isFetching}
          onRetry={() => void list.refetch()}
        />
      ) : null}
      {months.length > 0 ? (
        <ul className="card divide-y divide-line-1">
          {(all ? months : months.slice(0, shownAtFirst)).map((month) => (
            <Month key={month.month} teamId={teamId} statement={month} />
          ))}
        </ul>
      ) : null}
      {months.length > shownAtFirst && !all ? (
        <Button size="small" kind="ghost" className="-ml-3 mt-3" onClick={() => setAll(true)}>
          {texts.showAll(months.length)}
        </Button>
      ) : null}
    </section>
  )
}

/** A month: what it came to once it is over, and its files. */
function Month({ teamId, statement }: { teamId: string; statement: Statement }) {
  const name = monthName(statement.month)
  const [open, setOpen] = useState(false)
  return (
    <li className="flex flex-wrap items-center gap-x-6 gap-y-2 px-5 py-3 text-control">
      <span className="flex min-w-40 flex-1 items-center gap-3 font-medium text-hi">
        {name}
        {statement.final ? null : <Badge tone="quiet">{texts.soFar}</Badge>}
      </span>
      {statement.final ? (
        <dl className="price flex gap-6 text-mid">
          <Sum label={texts.charged} amount={statement.charges} />
          <Sum label={texts.closing} amount={statement.closing_balance} />
        </dl>
      ) : null}
      <span className="flex flex-wrap gap-2">
        <Button size="small" aria-label={texts.breakdownOf(name)} onClick={() => setOpen(true)}>
          {texts.breakdown}
        </Button>
        <File teamId={teamId} month={statement.month} name={name} kind="pdf" />
        <File teamId={teamId} month={statement.month} name={name} kind="csv" />
      </span>
      <MonthDialog teamId={teamId} month={statement.month} open={open} onClose={() => setOpen(false)} />
    </li>
  )
}

function Sum({ label, amount }: { label: string; amount: number }) {
  return (
    <div className="flex items-baseline gap-2">
      <dt className="text-low text-meta">{label}</dt>
      <dd>{formatUsd(amount)}</dd>
    </div>
  )
}

function File({
  teamId,
  month,
  name,
  kind,
}: {
  teamId: string
  month: string
  name: string
  kind: 'pdf' | 'csv'
}) {
  const file = useStatementFile(teamId)
  const Icon = kind === 'pdf' ? FileText : Sheet
  return (
    <Button
      size="small"
      busy={file.isPending}
      aria-label={texts.of(texts[kind], name)}
      icon={<Icon size={14} aria-hidden="true" />}
      onClick={() => file.mutate(`${month}.${kind}`)}
    >
      {texts[kind]}
    </Button>
  )
}
