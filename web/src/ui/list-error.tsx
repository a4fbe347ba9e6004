import { useState } from 'react'
import { copy } from '@/copy/en'
import { Button } from './button'
import { Notice } from './notice'

interface ListErrorProps {
  text: string
  /** Why; null: nobody knows. Undefined while there is no error: what was said last stays while it is tried again. */
  detail: string | null | undefined
  busy: boolean
  onRetry: () => void
}

/** Says that a list could not be read, and why; what was there before stays below it. */
export function ListError({ text, detail, busy, onRetry }: ListErrorProps) {
  const [said, setSaid] = useState(detail)
  if (detail !== undefined && detail !== said) setSaid(detail)
  return (
    <Notice
      tone="danger"
      detail={said ?? null}
      action={
        <Button size="small" busy={busy} onClick={onRetry}>
          {copy.app.retry}
        </Button>
      }
    >
      {text}
    </Notice>
  )
}
