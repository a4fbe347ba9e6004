import { copy } from '@/copy/en'
import { Button } from './button'
import { Notice } from './notice'

/** Says that a list could not be read; what was there before stays below it. */
export function ListError({ text, busy, onRetry }: { text: string; busy: boolean; onRetry: () => void }) {
  return (
    <Notice
      tone="danger"
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
