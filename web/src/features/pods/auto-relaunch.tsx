import type { Pod } from '@/api/types'
import { copy } from '@/copy/en'
import { useDeleteAccess } from '@/features/session/queries'
import { Switch } from '@/ui/field'
import { awaitsRelaunch } from './model'
import { useSetRelaunch } from './queries'

/** Whether a pod is started again on another cloud when its machine is lost; while that is tried it can be called off. */
export function AutoRelaunch({ pod }: { pod: Pod }) {
  const { mutate } = useSetRelaunch(pod.team_id)
  const access = useDeleteAccess(copy.pods.signInToChange)(pod.created_by)
  const waits = awaitsRelaunch(pod)
  if (pod.status !== 'ready' && !waits) return null
  const hint = waits ? copy.pods.autoRelaunchStop : copy.pods.autoRelaunchHint
  return (
    <Switch
      label={copy.pods.autoRelaunch}
      checked={pod.auto_relaunch}
      disabled={!access.can}
      title={access.can ? hint : access.reason}
      onChange={(on) => {
        // Once called off the switch goes; the focus stays with the card.
        if (waits) document.activeElement?.closest<HTMLElement>('article')?.focus()
        mutate({ pod, on })
      }}
    />
  )
}
