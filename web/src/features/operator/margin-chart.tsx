import { clsx } from 'clsx'
import { useState } from 'react'
import type { OperatorDayMargin, OperatorMargin } from '@/api/types'
import { copy } from '@/copy/en'
import { dayName, scaleEnd } from '@/lib/chart'
import { heightOf, usdText } from './model'

const texts = copy.operator.margin

interface DayBarsProps {
  days: readonly OperatorDayMargin[]
  total: OperatorMargin
}

/** A bar a day of what users paid, with a mark at what the clouds charged; the arrow keys go from day to day. */
export function DayBars({ days, total }: DayBarsProps) {
  const [chosen, setChosen] = useState<number | null>(null)
  const last = days.length - 1
  const day = chosen === null ? undefined : days[chosen]
  const end = scaleEnd(Math.max(0, ...days.map(({ paid, upstream }) => Math.max(paid, upstream))))
  const step = (key: string, index: number) => {
    const next = { ArrowLeft: index - 1, ArrowRight: index + 1, Home: 0, End: last }[key]
    return next === undefined ? null : Math.min(last, Math.max(0, next))
  }
  return (
    <>
      <p className="price mt-2 min-h-10 text-control sm:min-h-5">
        {day ? dayText(day) : sumText(`${texts.total}:`, total)}
      </p>
      <div className="price mt-3 flex items-center gap-3 text-low text-meta">
        {usdText(end)}
        <span className="h-px flex-1 bg-line-1" />
      </div>
      <div
        role="listbox"
        aria-label={texts.perDay}
        aria-orientation="horizontal"
        onPointerLeave={() => setChosen(null)}
        onBlur={() => setChosen(null)}
        onKeyDown={(event) => {
          const next = step(event.key, chosen ?? last)
          const bar = next === null ? undefined : event.currentTarget.querySelectorAll('g')[next]
          if (!bar) return
          event.preventDefault()
          bar.focus()
        }}
      >
        <svg role="presentation" className="block h-32 w-full overflow-visible">
          {days.map((each, index) => (
            <g
              key={each.day}
              role="option"
              aria-selected={index === chosen}
              aria-label={dayText(each)}
              tabIndex={index === (chosen ?? last) ? 0 : -1}
              onFocus={() => setChosen(index)}
              onPointerEnter={() => setChosen(index)}
            >
              <Bar day={each} at={index} of={days.length} end={end} chosen={index === chosen} />
            </g>
          ))}
        </svg>
      </div>
      <div className="flex flex-wrap justify-between gap-x-4 gap-y-2 border-line-1 border-t pt-2 text-low text-meta">
        <span aria-hidden="true">{dayName(days[0]?.day ?? '')}</span>
        <ul className="flex flex-wrap justify-center gap-x-5 gap-y-1 max-sm:order-last max-sm:w-full">
          <Key look="h-2.5 bg-tide" text={texts.paid} />
          <Key look="h-2.5 bg-danger" text={texts.lossDays} />
          <Key look="h-0.5 bg-hi" text={texts.upstream} />
        </ul>
        <span aria-hidden="true">{dayName(days[last]?.day ?? '')}</span>
      </div>
    </>
  )
}

interface BarProps {
  day: OperatorDayMargin
  at: number
  of: number
  end: number
  chosen: boolean
}

function Bar({ day: { paid, upstream, negative }, at, of, end, chosen }: BarProps) {
  const column = 100 / of
  const height = heightOf(paid, end)
  const cost = heightOf(upstream, end)
  const place = { x: `${(at + 0.14) * column}%`, width: `${0.72 * column}%` }
  return (
    <>
      <rect
        x={`${at * column}%`}
        width={`${column}%`}
        height="100%"
        opacity={chosen ? 0.15 : 0}
        fill="currentColor"
      />
      {negative ? (
        // What was lost, up to the mark.
        <rect
          {...place}
          y={`${100 - cost}%`}
          height={`${cost}%`}
          opacity=".3"
          fill="currentColor"
          className="text-danger"
        />
      ) : null}
      <rect
        {...place}
        y={`${100 - height}%`}
        height={`${height}%`}
        fill="currentColor"
        className={negative ? 'text-danger' : 'text-tide'}
      />
      {upstream > 0 ? (
        <rect
          x={`${(at + 0.04) * column}%`}
          width={`${0.92 * column}%`}
          y={`${100 - cost}%`}
          height="2"
          fill="currentColor"
          className="text-hi"
        />
      ) : null}
    </>
  )
}

function Key({ look, text }: { look: string; text: string }) {
  return (
    <li className="flex items-center gap-1.5">
      <span aria-hidden="true" className={clsx('w-2.5 rounded-[1px]', look)} />
      {text}
    </li>
  )
}

function dayText(day: OperatorDayMargin): string {
  return sumText(`${dayName(day.day)}:`, day)
}

function sumText(head: string, { paid, upstream, margin }: OperatorMargin): string {
  return `${head} ${texts.paid} ${usdText(paid)}, ${texts.upstream} ${usdText(upstream)}, ${texts.margin} ${usdText(margin)}`
}
