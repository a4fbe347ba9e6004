import { clsx } from 'clsx'
import type { ReactNode } from 'react'
import { copy } from '@/copy/en'
import { formatRelative } from '@/lib/relative'
import { formatDateTime } from '@/lib/time'
import { useNow } from '@/ui/now'
import type { SectionId } from './alerts'

interface SectionProps {
  id: SectionId
  hint: string
  /** Stands beside the heading. */
  aside?: ReactNode
  children: ReactNode
}

/** A part of the page, which an alert's link leads to. */
export function Section({ id, hint, aside, children }: SectionProps) {
  const title = copy.operator.sections[id]
  return (
    <section id={id} aria-label={title} tabIndex={-1} className="scroll-mt-20 rounded-card outline-offset-8">
      <div className="mb-4 flex flex-wrap items-end gap-x-6 gap-y-3">
        <div className="min-w-0 flex-1 basis-72">
          <h2 className="font-semibold text-card">{title}</h2>
          <p className="mt-1 text-low text-meta">{hint}</p>
        </div>
        {aside}
      </div>
      <div className="grid grid-cols-1 gap-4">{children}</div>
    </section>
  )
}

/** How far an instant is from now; the instant itself is its title. */
export function Ago({ at, className }: { at: string; className?: string }) {
  const now = useNow()
  return (
    <time dateTime={at} title={formatDateTime(at)} className={clsx('whitespace-nowrap', className)}>
      {formatRelative(at, now)}
    </time>
  )
}

export interface Figure {
  readonly label: string
  readonly value: string
  /** It should be another. */
  readonly bad?: boolean
}

/** Figures side by side, each below its name. */
export function Figures({ figures, className }: { figures: readonly Figure[]; className: string }) {
  return (
    <dl className={clsx('card grid gap-x-4 gap-y-5 p-5', className)}>
      {figures.map(({ label, value, bad }) => (
        <div key={label} className="min-w-0">
          <dt className="text-low text-meta">{label}</dt>
          <dd className={clsx('price mt-1 font-medium text-card', bad ? 'text-danger' : 'text-hi')}>
            {value}
          </dd>
        </div>
      ))}
    </dl>
  )
}

/** A list below its name. */
export function Group({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div className="grid min-w-0 grid-cols-1 gap-3">
      <h3 className="font-medium text-body tracking-normal">{title}</h3>
      {children}
    </div>
  )
}

/** Says of what there is nothing. */
export function Nothing({ texts }: { texts: readonly string[] }) {
  if (texts.length === 0) return null
  return (
    <ul className="card divide-y divide-line-1 text-control">
      {texts.map((text) => (
        <li key={text} className="px-5 py-3">
          {text}
        </li>
      ))}
    </ul>
  )
}

/** Says that a list goes on where it ends. */
export function LeftOut({ count }: { count: number }) {
  return count > 0 ? <p className="text-low text-meta">{copy.operator.more(count)}</p> : null
}

/** A second, quieter line of a cell. */
export function Quiet({ children, className }: { children: ReactNode; className?: string }) {
  return <div className={clsx('mt-0.5 text-low text-meta', className)}>{children}</div>
}

/** What a machine wrote: an error, a reason. */
export function Words({ children }: { children: string }) {
  return <p className="num wrap-anywhere text-mid text-meta">{children}</p>
}
