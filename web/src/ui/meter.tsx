import { clsx } from 'clsx'
import { type Level, levelOf, percentOf } from '@/lib/level'

const specTones: Record<Level, string> = { 1: 'bg-low', 2: 'bg-tide', 3: 'bg-ready', 4: 'bg-beacon' }
const usageTones: Record<Level, string> = { 1: 'bg-ready', 2: 'bg-tide', 3: 'bg-warn', 4: 'bg-danger' }

interface MeterProps {
  label: string
  value: number
  max: number
  /** What the reader sees and hears: the true number, also where the bar is full. */
  text: string
  palette?: 'spec' | 'usage'
  className?: string
}

/** A bar of a maximum with marks at the quarters. The bar is clamped, the text is not. */
export function Meter({ label, value, max, text, palette = 'spec', className }: MeterProps) {
  const level = levelOf(value, max)
  const tones = palette === 'spec' ? specTones : usageTones
  return (
    // biome-ignore lint/a11y/useSemanticElements: <meter> cannot be drawn alike in all browsers.
    <div
      role="meter"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={max}
      aria-valuenow={Math.min(value, max)}
      aria-valuetext={text}
      data-level={level}
      className={clsx('relative h-1.5 overflow-hidden rounded-full bg-ink-3', className)}
    >
      <div
        className={clsx('h-full rounded-full', tones[level])}
        style={{ width: `${percentOf(value, max)}%` }}
      />
      <span className="absolute inset-y-0 left-1/4 w-px bg-ink-1" />
      <span className="absolute inset-y-0 left-1/2 w-px bg-ink-1" />
      <span className="absolute inset-y-0 left-3/4 w-px bg-ink-1" />
    </div>
  )
}

/** A meter with its name before and its number behind. */
export function SpecBar(props: MeterProps) {
  return (
    <div className="grid grid-cols-[96px_1fr_72px] items-center gap-3 text-meta">
      <span className="text-low">{props.label}</span>
      <Meter {...props} />
      <span className="num text-right text-hi">{props.text}</span>
    </div>
  )
}
