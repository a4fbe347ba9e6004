import { clsx } from 'clsx'
import { useMemo, useState } from 'react'
import type { Transaction } from '@/api/types'
import { copy } from '@/copy/en'
import { formatSignedUsd } from '@/lib/money'
import { formatRelative } from '@/lib/relative'
import { formatDateTime } from '@/lib/time'
import { Badge, Dot } from '@/ui/badge'
import { Button } from '@/ui/button'
import { type Column, DataList } from '@/ui/data-list'
import { useMinute } from '@/ui/now'
import { referenceText, typeTones } from './model'

interface TransactionTableProps {
  label: string
  rows: readonly Transaction[]
  activePods: readonly string[]
}

/** A year of daily rows makes a long page: the rest comes when it is asked for. */
const atFirst = 100

/** Transactions as a table, as cards on narrow screens. */
export function TransactionTable({ label, rows, activePods }: TransactionTableProps) {
  const now = useMinute()
  const columns = useMemo(() => columnsFor(activePods, now), [activePods, now])
  const [all, setAll] = useState(false)
  return (
    <>
      <DataList
        label={label}
        columns={columns}
        rows={all ? rows : rows.slice(0, atFirst)}
        rowKey={(row) => row.id}
      />
      {rows.length > atFirst && !all ? (
        <Button wide className="mt-3" onClick={() => setAll(true)}>
          {copy.billing.showAll(rows.length)}
        </Button>
      ) : null}
    </>
  )
}

function columnsFor(activePods: readonly string[], now: number): readonly Column<Transaction>[] {
  const heads = copy.billing.columns
  return [
    {
      header: heads.date,
      width: 'w-[170px] xl:w-[190px]',
      cell: (row) => (
        <>
          <time dateTime={row.created_at}>{formatDateTime(row.created_at)}</time>
          <span className="block text-low text-meta">{formatRelative(row.created_at, now)}</span>
        </>
      ),
    },
    {
      header: heads.type,
      width: 'w-[80px] xl:w-[96px]',
      cell: (row) => <Badge tone={typeTones[row.transaction_type]}>{row.transaction_type}</Badge>,
    },
    {
      header: heads.amount,
      width: 'w-[112px] xl:w-[130px]',
      cell: (row) => (
        <span
          // The cents are what is shown; the books are exact to a millionth of a dollar.
          title={`${row.amount} USD`}
          className={clsx(
            'price inline-flex items-center gap-2 font-medium',
            row.amount > 0 ? 'text-ready' : 'text-hi',
          )}
        >
          {formatSignedUsd(row.amount)}
          {row.resource_id && activePods.includes(row.resource_id) ? (
            <Dot tone="ready" label={copy.billing.activePod} />
          ) : null}
        </span>
      ),
    },
    { header: heads.description, cell: (row) => <span className="wrap-anywhere">{row.description}</span> },
    {
      header: heads.reference,
      width: 'w-[130px] xl:w-[150px]',
      cell: (row) => (
        <>
          <span className="num text-low">{referenceText(row.reference_id) ?? copy.billing.noReference}</span>
          {row.receipt_url ? (
            <a
              href={row.receipt_url}
              target="_blank"
              rel="noreferrer"
              className="block w-fit rounded-badge text-hi text-meta underline decoration-line-3 underline-offset-3 hover:decoration-beacon"
            >
              {copy.billing.receipt}
            </a>
          ) : null}
        </>
      ),
    },
  ]
}
