import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { clsx } from 'clsx'
import { useState } from 'react'
import { reasonOf } from '@/api/error'
import type { OperatorMargins } from '@/api/types'
import { copy } from '@/copy/en'
import { Button } from '@/ui/button'
import { ListError } from '@/ui/list-error'
import { Skeleton } from '@/ui/spinner'
import { DayBars } from './margin-chart'
import { CloudMargins, DayMargins, OfferMargins } from './margin-tables'
import { shareText, soldText, usdText } from './model'
import { type Figure, Figures, Group, LeftOut, Nothing, Section } from './parts'
import { marginsQuery } from './queries'

const texts = copy.operator.margin
const periods = [7, 30, 90] as const

interface MarginProps {
  days: number
  onDays: (days: number) => void
}

/** What users paid against what the clouds charged: together, by day, by cloud and by offer. */
export default function Margin({ days, onDays }: MarginProps) {
  const { data, error, isError, isFetching, isPlaceholderData, refetch } = useQuery({
    ...marginsQuery(days),
    placeholderData: keepPreviousData,
  })
  const [asTable, setAsTable] = useState(false)
  return (
    <Section id="margin" hint={texts.hint(days)} aside={<Periods days={days} onDays={onDays} />}>
      {isError ? (
        <ListError
          text={texts.failed}
          detail={reasonOf(error)}
          busy={isFetching}
          onRetry={() => void refetch()}
        />
      ) : null}
      {data ? (
        <div
          aria-busy={isPlaceholderData}
          className={clsx('grid grid-cols-1 gap-4 transition-opacity', isPlaceholderData && 'opacity-55')}
        >
          <Figured margins={data} asTable={asTable} onTable={setAsTable} />
        </div>
      ) : null}
      {data || isError ? null : (
        <>
          <Skeleton className="h-[94px] rounded-card" />
          <Skeleton className="h-72 rounded-card" />
        </>
      )}
    </Section>
  )
}

function Periods({ days, onDays }: MarginProps) {
  return (
    <fieldset className="flex gap-1">
      <legend className="sr-only">{texts.days}</legend>
      {periods.map((each) => (
        <Button
          key={each}
          size="small"
          kind={each === days ? 'plain' : 'ghost'}
          aria-pressed={each === days}
          onClick={() => onDays(each)}
        >
          {texts.choices(each)}
        </Button>
      ))}
    </fieldset>
  )
}

interface FiguredProps {
  margins: OperatorMargins
  asTable: boolean
  onTable: (on: boolean) => void
}

function Figured({ margins, asTable, onTable }: FiguredProps) {
  const { total, days } = margins
  if (total.machine_seconds === 0 && total.paid === 0 && total.upstream === 0) {
    return <Nothing texts={[texts.none(days)]} />
  }
  return (
    <>
      <Figures figures={figuresOf(total)} className="grid-cols-2 md:grid-cols-5" />
      <div className="card p-5">
        <div className="flex items-center gap-4">
          <h3 className="flex-1 font-medium text-body tracking-normal">{texts.perDay}</h3>
          <Button size="small" kind="ghost" className="-mr-2" onClick={() => onTable(!asTable)}>
            {asTable ? texts.chart : texts.table}
          </Button>
        </div>
        {asTable ? (
          <DayMargins days={margins.per_day} total={total} />
        ) : (
          <DayBars days={margins.per_day} total={total} />
        )}
      </div>
      <Group title={texts.perCloud}>
        <CloudMargins clouds={margins.per_provider} />
      </Group>
      <Group title={texts.perOffer}>
        <OfferMargins offers={margins.per_offer} />
        <LeftOut count={margins.offers_left_out} />
      </Group>
    </>
  )
}

function figuresOf(total: OperatorMargins['total']): Figure[] {
  return [
    { label: texts.paid, value: usdText(total.paid) },
    { label: texts.upstream, value: usdText(total.upstream) },
    { label: texts.margin, value: usdText(total.margin), bad: total.negative },
    { label: texts.share, value: shareText(total), bad: total.negative },
    { label: texts.sold, value: soldText(total) },
  ]
}
