import { clsx } from 'clsx'
import { useState } from 'react'
import type { OperatorDayMargin, OperatorMargin, OperatorMargins, OperatorOfferMargin } from '@/api/types'
import { copy } from '@/copy/en'
import { dayName } from '@/lib/chart'
import { gpuName, nameOf } from '@/lib/names'
import { Badge } from '@/ui/badge'
import { Button } from '@/ui/button'
import { useMedia } from '@/ui/media'
import { countText, shareText, usdText } from './model'
import { Quiet } from './parts'
import { type Column, Table } from './table'

const texts = copy.operator.margin
const shownAtFirst = 12

type ProviderMargin = OperatorMargins['per_provider'][number]

const paid: Column<OperatorMargin> = {
  header: texts.paid,
  right: true,
  cell: (row) => usdText(row.paid),
  sort: (row) => row.paid,
}
const upstream: Column<OperatorMargin> = {
  header: texts.upstream,
  right: true,
  cell: (row) => usdText(row.upstream),
  sort: (row) => row.upstream,
}
const margin: Column<OperatorMargin> = {
  header: texts.margin,
  right: true,
  cell: (row) => <Amount text={usdText(row.margin)} negative={row.negative} />,
  sort: (row) => row.margin,
}
const share: Column<OperatorMargin> = {
  header: texts.share,
  right: true,
  cell: (row) => <Amount text={shareText(row)} negative={row.negative} />,
  // Where nobody paid, only the cost speaks.
  sort: (row) => (row.paid === 0 ? Number.NEGATIVE_INFINITY : row.margin / row.paid),
}

/** The columns of money; on narrow screens, where the rest is to be scrolled to, what is left comes first. */
function useMoney(): readonly Column<OperatorMargin>[] {
  const wide = useMedia('(min-width: 768px)')
  return wide ? [paid, upstream, margin, share] : [margin, share, paid, upstream]
}

const cloudColumn: Column<ProviderMargin> = {
  header: texts.cloud,
  width: 'w-[30%]',
  cell: ({ provider, negative }) => <Named name={nameOf(provider)} negative={negative} />,
  sort: ({ provider }) => provider,
}

const offerColumn: Column<OperatorOfferMargin> = {
  header: texts.offer,
  width: 'w-[30%]',
  cell: ({ provider, cloud, gpu_type: type, gpu_count: count, negative }) => (
    <>
      <Named name={`${count}x ${gpuName(type)}`} negative={negative} />
      <Quiet>{cloud === provider ? nameOf(cloud) : texts.by(nameOf(cloud), nameOf(provider))}</Quiet>
    </>
  ),
  sort: ({ gpu_type: type, gpu_count: count }) => `${type} ${count}`,
}

const lowestFirst = { column: texts.margin, falling: false }

/** The margin at each cloud account. */
export function CloudMargins({ clouds }: { clouds: readonly ProviderMargin[] }) {
  return (
    <Table
      label={texts.perCloud}
      columns={[cloudColumn, ...useMoney()]}
      rows={clouds}
      rowKey={({ provider }) => provider}
      order={lowestFirst}
    />
  )
}

/** The margin of each thing that is sold; the worst dozen at first. */
export function OfferMargins({ offers }: { offers: readonly OperatorOfferMargin[] }) {
  const money = useMoney()
  const [all, setAll] = useState(false)
  return (
    <>
      <Table
        label={texts.perOffer}
        columns={[offerColumn, ...money]}
        rows={offers}
        rowKey={({ provider, cloud, gpu_type, gpu_count }) => `${provider} ${cloud} ${gpu_type} ${gpu_count}`}
        order={lowestFirst}
        {...(all ? {} : { most: shownAtFirst })}
      />
      {offers.length > shownAtFirst && !all ? (
        <Button size="small" kind="ghost" className="-ml-3 justify-self-start" onClick={() => setAll(true)}>
          {copy.operator.showAll(countText(offers.length))}
        </Button>
      ) : null}
    </>
  )
}

/** The days on which there was something, newest first, and all of them together. */
export function DayMargins({ days, total }: { days: readonly OperatorDayMargin[]; total: OperatorMargin }) {
  const shown = days.filter(({ paid, upstream }) => paid !== 0 || upstream !== 0).reverse()
  return (
    <table aria-label={texts.perDay} className="price mt-2 w-full text-left text-control">
      <thead>
        <tr className="border-line-1 border-b text-low text-meta">
          <th scope="col" className="py-2.5 font-medium">
            {texts.day}
          </th>
          {[texts.paid, texts.upstream, texts.margin].map((text) => (
            <th key={text} scope="col" className="py-2.5 pl-3 text-right font-medium">
              {text}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {shown.map((day) => (
          <Line key={day.day} head={dayName(day.day)} row={day} />
        ))}
      </tbody>
      <tfoot>
        <Line head={texts.total} row={total} />
      </tfoot>
    </table>
  )
}

function Line({ head, row: { paid, upstream, margin, negative } }: { head: string; row: OperatorMargin }) {
  const cell = 'py-2.5 pl-3 text-right'
  return (
    <tr className="border-line-1 border-b last:border-0">
      <th scope="row" className="whitespace-nowrap py-2.5 font-medium text-hi">
        {head}
      </th>
      <td className={cell}>{usdText(paid)}</td>
      <td className={cell}>{usdText(upstream)}</td>
      <td className={cell}>
        <Amount text={usdText(margin)} negative={negative} />
      </td>
    </tr>
  )
}

function Named({ name, negative }: { name: string; negative: boolean }) {
  return (
    <div className="flex flex-wrap items-center gap-x-2 gap-y-1">
      <span className="font-medium text-hi">{name}</span>
      {negative ? <Badge tone="danger">{texts.loss}</Badge> : null}
    </div>
  )
}

function Amount({ text, negative }: { text: string; negative: boolean }) {
  return <span className={clsx(negative ? 'font-medium text-danger' : 'text-hi')}>{text}</span>
}
