import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { reasonOf } from '@/api/error'
import type { Spend } from '@/api/types'
import { copy } from '@/copy/en'
import { dayName } from '@/lib/chart'
import { formatUsd } from '@/lib/money'
import { monthName } from '@/lib/month'
import { Dialog } from '@/ui/dialog'
import { ListError } from '@/ui/list-error'
import { Skeleton } from '@/ui/spinner'
import { Tabs } from '@/ui/tabs'
import { phaseOf } from './model'
import { type SpendBy, spendQuery } from './statement-queries'

const texts = copy.statements
const ways: readonly SpendBy[] = ['pod', 'member', 'volume', 'day']

interface MonthDialogProps {
  teamId: string
  /** As 2027-03. */
  month: string
  open: boolean
  onClose: () => void
}

/** Where a month's money went: to which pods and volumes, by whom, and when. */
export function MonthDialog({ teamId, month, open, onClose }: MonthDialogProps) {
  const [by, setBy] = useState<SpendBy>('pod')
  return (
    <Dialog
      open={open}
      onClose={onClose}
      title={texts.spendIn(monthName(month))}
      description={texts.spendHint}
      closeLabel={copy.app.close}
      width="wide"
    >
      <Tabs
        label={texts.spendBy}
        value={by}
        tabs={ways.map((value) => ({ value, label: texts.by[value] }))}
        onChange={setBy}
      >
        <Panel key={by} teamId={teamId} month={month} by={by} />
      </Tabs>
    </Dialog>
  )
}

function Panel({ teamId, month, by }: { teamId: string; month: string; by: SpendBy }) {
  const list = useQuery(spendQuery(teamId, month, by))
  if (phaseOf(list) === 'first') return <Skeleton raised className="h-40" />
  if (!list.data) {
    return (
      <ListError
        text={texts.spendFailed}
        detail={reasonOf(list.error)}
        busy={list.isFetching}
        onRetry={() => void list.refetch()}
      />
    )
  }
  const rows = list.data.filter((row) => row.total !== 0)
  if (rows.length === 0) return <p className="py-6 text-center text-low">{texts.spendNone}</p>
  return <Table rows={by === 'day' ? rows : mostFirst(rows)} by={by} />
}

/** What cost most is what is looked for. */
function mostFirst(rows: readonly Spend[]): Spend[] {
  return [...rows].sort((a, b) => b.total - a.total)
}

function Table({ rows, by }: { rows: readonly Spend[]; by: SpendBy }) {
  const most = Math.max(...rows.map((row) => row.total))
  const total = rows.reduce((sum, row) => sum + Math.round(row.total * 1e6), 0) / 1e6
  const split = by === 'member' || by === 'day'
  return (
    <table aria-label={texts.by[by]} className="price w-full text-left text-control">
      <thead>
        <tr className="border-line-1 border-b text-low text-meta">
          <th scope="col" className="pb-2 font-medium">
            {texts.heads[by]}
          </th>
          {split
            ? [copy.spend.pods, copy.spend.storage].map((head) => (
                <th key={head} scope="col" className="pb-2 pl-4 text-right font-medium max-sm:hidden">
                  {head}
                </th>
              ))
            : null}
          <th scope="col" className="pb-2 pl-4 text-right font-medium">
            {copy.spend.total}
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.key ?? ''} className="border-line-1 border-b align-top">
            <th scope="row" className="py-2.5 font-medium text-hi">
              <span className="wrap-anywhere">{nameOf(row, by)}</span>
              <span aria-hidden="true" className="mt-1.5 block h-1 overflow-hidden rounded-full bg-ink-3">
                <span
                  className="block h-full rounded-full bg-tide"
                  style={{ width: `${Math.max(0, (row.total / most) * 100)}%` }}
                />
              </span>
            </th>
            {split
              ? [row.pods, row.storage].map((part, index) => (
                  <td
                    // biome-ignore lint/suspicious/noArrayIndexKey: the two columns stay in their places.
                    key={index}
                    className="py-2.5 pl-4 text-right max-sm:hidden"
                  >
                    {formatUsd(part)}
                  </td>
                ))
              : null}
            <td className="py-2.5 pl-4 text-right text-hi">{formatUsd(row.total)}</td>
          </tr>
        ))}
      </tbody>
      <tfoot>
        <tr className="text-hi">
          <th scope="row" className="pt-2.5 font-medium">
            {copy.spend.total}
          </th>
          {split ? <td colSpan={2} className="max-sm:hidden" /> : null}
          <td className="pt-2.5 pl-4 text-right font-semibold">{formatUsd(total)}</td>
        </tr>
      </tfoot>
    </table>
  )
}

function nameOf(row: Spend, by: SpendBy): string {
  if (row.key === null) return texts.nobody
  return by === 'day' ? dayName(row.key) : row.name
}
