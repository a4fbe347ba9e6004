import type { ReactNode } from 'react'

interface RowProps {
  title: string
  badge?: ReactNode
  /** What can be done, at the end of the row. */
  actions?: ReactNode
  children: ReactNode
}

/** One thing of the account: what it is, how it stands, and what can be done. */
export function Row({ title, badge, actions, children }: RowProps) {
  return (
    <li className="flex flex-wrap items-center gap-x-8 gap-y-3 px-5 py-4">
      <div className="min-w-0 flex-1 basis-72">
        <div className="flex items-center gap-3">
          <h3 className="font-medium text-body tracking-normal">{title}</h3>
          {badge}
        </div>
        <div className="mt-1 grid grid-cols-1 gap-1 text-control">{children}</div>
      </div>
      {actions ? <div className="flex flex-wrap gap-2">{actions}</div> : null}
    </li>
  )
}
