import { useMemo, useState } from 'react'
import type { Transaction } from '@/api/types'
import { copy } from '@/copy/en'
import { dayName } from '@/lib/chart'
import { formatUsd } from '@/lib/money'
import { Dot } from '@/ui/badge'
import { Button } from '@/ui/button'
import { useMinute } from '@/ui/now'
import { Skeleton } from '@/ui/spinner'
import { isCut } from './model'
import { type SpendDay, spendByDay, spendScale, spendTotal } from './spend'
import { SpendTable } from './spend-table'

const texts = copy.spend
const columnWidth = 100 / 30
const barWidth = 2.4
/** A day that cost anything is seen, however little it was. */
const leastShare = 1.5

/** What each of the last 30 days cost: as bars, or as a table. */
export default function SpendChart({ transactions }: { transactions: readonly Transaction[] | undefined }) {
  const now = useMinute()
  const spend = useMemo(() => spendByDay(transactions ?? [], now), [transactions, now])
  const [asTable, setAsTable] = useState(false)
  const [chosen, setChosen] = useState<number | null>(null)
  const total = spendTotal(spend)
  const day = chosen === null ? undefined : spend[chosen]
  if (!transactions) return <Skeleton className="min-h-72 rounded-card" />
  if (spend.every(({ pods, storage }) => pods === 0 && storage === 0)) {
    return <p className="card px-5 py-4 text-control text-low">{texts.none}</p>
  }
  return (
    <section className="card min-h-72 p-5">
      <div className="flex items-center gap-4">
        <h2 className="flex-1 font-medium text-lead tracking-normal">{texts.title}</h2>
        <Button size="small" kind="ghost" className="-mr-2" onClick={() => setAsTable(!asTable)}>
          {asTable ? texts.chart : texts.table}
        </Button>
      </div>
      {asTable ? (
        <SpendTable spend={spend} />
      ) : (
        <>
          <p className="price mt-2 text-control">
            {day ? dayText(day) : `${texts.total} ${formatUsd(total)}`}
          </p>
          <Bars spend={spend} chosen={chosen} onChoose={setChosen} />
        </>
      )}
      {isCut(transactions) ? (
        <p className="mt-3 text-low text-meta">{copy.billing.newest(transactions.length.toLocaleString())}</p>
      ) : null}
    </section>
  )
}

function Key({ tone, text }: { tone: 'ready' | 'tide'; text: string }) {
  return (
    <li className="flex items-center gap-1.5">
      <Dot tone={tone} />
      {text}
    </li>
  )
}

interface BarsProps {
  spend: readonly SpendDay[]
  chosen: number | null
  onChoose: (index: number | null) => void
}

/** One bar a day, pods below and storage above; the arrow keys go from day to day. */
function Bars({ spend, chosen, onChoose }: BarsProps) {
  const last = spend.length - 1
  const end = spendScale(spend)
  const step = (key: string, index: number) => {
    const next = { ArrowLeft: index - 1, ArrowRight: index + 1, Home: 0, End: last }[key]
    return next === undefined ? null : Math.min(last, Math.max(0, next))
  }
  return (
    <>
      <div className="price mt-3 flex items-center gap-3 text-low text-meta">
        {formatUsd(end)}
        <span className="h-px flex-1 bg-line-1" />
      </div>
      <div
        role="listbox"
        aria-label={texts.title}
        aria-orientation="horizontal"
        onPointerLeave={() => onChoose(null)}
        onBlur={() => onChoose(null)}
        onKeyDown={(event) => {
          const next = step(event.key, chosen ?? last)
          const bar = next === null ? undefined : event.currentTarget.querySelectorAll('g')[next]
          if (!bar) return
          event.preventDefault()
          bar.focus()
        }}
      >
        <svg role="presentation" className="block h-32 w-full overflow-visible">
          {spend.map((day, index) => (
            <g
              key={day.day}
              role="option"
              aria-selected={index === chosen}
              aria-label={dayText(day)}
              tabIndex={index === (chosen ?? last) ? 0 : -1}
              onFocus={() => onChoose(index)}
              onPointerEnter={() => onChoose(index)}
            >
              <Bar day={day} index={index} end={end} chosen={index === chosen} />
            </g>
          ))}
        </svg>
      </div>
      <div className="flex justify-between border-line-1 border-t pt-2 text-low text-meta">
        <span aria-hidden="true">{dayName(spend[0]?.day ?? '')}</span>
        <ul className="flex gap-5">
          <Key tone="ready" text={texts.pods} />
          <Key tone="tide" text={texts.storage} />
        </ul>
        <span aria-hidden="true">{dayName(spend[last]?.day ?? '')}</span>
      </div>
    </>
  )
}

function Bar({ day, index, end, chosen }: { day: SpendDay; index: number; end: number; chosen: boolean }) {
  const x = index * columnWidth
  const pods = share(day.pods, end)
  const storage = share(day.storage, end)
  const at = { x: `${x + (columnWidth - barWidth) / 2}%`, width: `${barWidth}%` }
  return (
    <>
      <rect
        x={`${x}%`}
        width={`${columnWidth}%`}
        height="100%"
        opacity={chosen ? 0.15 : 0}
        fill="currentColor"
      />
      <rect {...at} y={`${100 - pods}%`} height={`${pods}%`} fill="currentColor" className="text-ready" />
      <rect
        {...at}
        y={`${100 - pods - storage}%`}
        height={`${storage}%`}
        fill="currentColor"
        className="text-tide"
      />
    </>
  )
}

function share(value: number, end: number): number {
  return value <= 0 ? 0 : Math.max(leastShare, (value / end) * 100)
}

function dayText({ day, pods, storage }: SpendDay): string {
  return `${dayName(day)}: ${texts.pods} ${formatUsd(pods)}, ${texts.storage} ${formatUsd(storage)}`
}
