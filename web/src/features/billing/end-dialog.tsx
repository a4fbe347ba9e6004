import { detailOf } from '@/api/error'
import type { Subscription } from '@/api/types'
import { copy } from '@/copy/en'
import { formatDay } from '@/lib/month'
import { Button } from '@/ui/button'
import { Dialog } from '@/ui/dialog'
import { useEndSubscription } from './plan-queries'

const texts = copy.plan

interface EndDialogProps {
  teamId: string
  plan: Subscription
  open: boolean
  onClose: () => void
}

/** Says what the end of the subscription means, and when, before it is asked for. */
export function EndDialog({ teamId, plan, open, onClose }: EndDialogProps) {
  const { mutate, isPending, error, reset } = useEndSubscription(teamId)
  const day = plan.period_end_at ? formatDay(plan.period_end_at) : null
  const close = () => {
    reset()
    onClose()
  }
  return (
    <Dialog open={open} onClose={close} title={texts.endTitle} closeLabel={copy.app.close} busy={isPending}>
      <div className="grid grid-cols-1 gap-4">
        <p>{texts.endUntil(day)}</p>
        <ul className="grid list-disc grid-cols-1 gap-1.5 pl-5 marker:text-low">
          {texts.endEffects.map((effect) => (
            <li key={effect}>{effect}</li>
          ))}
        </ul>
        <p className="text-control text-low">{texts.endBack}</p>
        {error ? (
          <p role="alert" className="text-control text-danger">
            {detailOf(error, texts.endFailed)}
          </p>
        ) : null}
        <div className="flex flex-wrap justify-end gap-2">
          <Button disabled={isPending} onClick={close}>
            {texts.endCancel}
          </Button>
          <Button kind="alarm" busy={isPending} onClick={() => mutate(day, { onSuccess: close })}>
            {isPending ? texts.endBusy : texts.endConfirm}
          </Button>
        </div>
      </div>
    </Dialog>
  )
}
