import { clsx } from 'clsx'

/** A turning ring. It has no name of its own: the busy text stands beside it. */
export function Spinner({ className = 'size-3.5' }: { className?: string }) {
  return (
    <svg viewBox="0 0 16 16" fill="none" aria-hidden="true" className={clsx('animate-spin', className)}>
      <circle cx="8" cy="8" r="6.5" stroke="currentColor" strokeWidth="2" opacity=".25" />
      <path d="M14.5 8A6.5 6.5 0 0 0 8 1.5" stroke="currentColor" strokeWidth="2" strokeLinecap="round" />
    </svg>
  )
}

/** A block of the size of what will stand there; `raised` is on a dialog, which has the colour of the others. */
export function Skeleton({ className, raised = false }: { className?: string; raised?: boolean }) {
  return (
    <div
      aria-hidden="true"
      className={clsx('animate-beat rounded-control', raised ? 'bg-ink-3' : 'bg-ink-2', className)}
    />
  )
}
