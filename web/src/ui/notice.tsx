import { clsx } from 'clsx'
import { CircleAlert, CircleCheck, Info } from 'lucide-react'
import type { ReactNode } from 'react'

type NoticeTone = 'info' | 'success' | 'danger'

const looks: Record<NoticeTone, { box: string; icon: ReactNode }> = {
  info: { box: 'border-tide/35 bg-tide-wash', icon: <Info size={16} className="text-tide" /> },
  success: { box: 'border-ready/35 bg-ready-wash', icon: <CircleCheck size={16} className="text-ready" /> },
  danger: { box: 'border-danger/35 bg-danger-wash', icon: <CircleAlert size={16} className="text-danger" /> },
}

interface NoticeProps {
  tone: NoticeTone
  children: ReactNode
  /** A second, quieter line. */
  detail?: string | null
  action?: ReactNode
  className?: string
}

/** A box with a message that stays. Dangers are announced at once, the others politely. */
export function Notice({ tone, children, detail, action, className }: NoticeProps) {
  return (
    <div
      role={tone === 'danger' ? 'alert' : 'status'}
      className={clsx(
        'flex gap-3 rounded-card border px-4 py-3 text-body text-hi',
        action && !detail ? 'items-center' : 'items-start',
        looks[tone].box,
        className,
      )}
    >
      <span aria-hidden="true" className="mt-[2.5px] shrink-0">
        {looks[tone].icon}
      </span>
      <div className="min-w-0 flex-1">
        <div>{children}</div>
        {detail ? <div className="text-control text-mid">{detail}</div> : null}
      </div>
      {action}
    </div>
  )
}
