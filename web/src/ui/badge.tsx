import { clsx } from 'clsx'
import type { ReactNode } from 'react'

/** The colours that carry a meaning; the word beside them carries it too. */
export type Tone = 'ready' | 'tide' | 'rig' | 'warn' | 'danger' | 'beacon' | 'quiet'

const washes: Record<Tone, string> = {
  ready: 'bg-ready-wash text-ready',
  tide: 'bg-tide-wash text-tide',
  rig: 'bg-rig-wash text-rig',
  warn: 'bg-warn-wash text-warn',
  danger: 'bg-danger-wash text-danger',
  beacon: 'border border-line-2 text-beacon',
  quiet: 'bg-ink-3 text-mid',
}

const dots: Record<Tone, string> = {
  ready: 'bg-ready',
  tide: 'bg-tide',
  rig: 'bg-rig',
  warn: 'bg-warn',
  danger: 'bg-danger',
  beacon: 'bg-beacon',
  quiet: 'bg-low',
}

/** A short word on a wash of its tone. */
export function Badge({
  tone = 'quiet',
  children,
  className,
}: {
  tone?: Tone
  children: ReactNode
  className?: string
}) {
  return (
    <span
      className={clsx(
        'inline-flex h-5 items-center whitespace-nowrap rounded-badge px-1.5 font-medium text-meta',
        washes[tone],
        className,
      )}
    >
      {children}
    </span>
  )
}

/** A coloured dot; always beside a word, or named by a label. */
export function Dot({ tone, label, className }: { tone: Tone; label?: string; className?: string }) {
  const look = clsx('inline-block size-1.5 shrink-0 rounded-full', dots[tone], className)
  return label ? (
    <span role="img" aria-label={label} title={label} className={look} />
  ) : (
    <span aria-hidden="true" className={look} />
  )
}

/** Dot and word of a state; `moving` states breathe. */
export function StatusChip({
  tone,
  moving = false,
  children,
}: {
  tone: Tone
  moving?: boolean
  children: ReactNode
}) {
  return (
    <span
      className={clsx(
        'inline-flex h-6 items-center gap-2 whitespace-nowrap rounded-badge px-2 font-medium text-meta',
        washes[tone],
      )}
    >
      <Dot tone={tone} className={moving ? 'animate-beat' : ''} />
      {children}
    </span>
  )
}
