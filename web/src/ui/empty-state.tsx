import type { ReactNode } from 'react'
import { DepthLines } from './depth-lines'

/** What stands where a list would: one sentence, a hint and one action. */
export function EmptyState({ title, hint, action }: { title: string; hint?: string; action?: ReactNode }) {
  return (
    <div className="card relative grid min-h-56 place-items-center overflow-hidden px-6 py-12 text-center">
      <DepthLines className="absolute inset-0 size-full" />
      <div className="relative max-w-[44ch]">
        <p className="font-medium text-hi text-lead">{title}</p>
        {hint ? <p className="mt-1 text-body">{hint}</p> : null}
        {action ? <div className="mt-5 flex justify-center">{action}</div> : null}
      </div>
    </div>
  )
}
