import type { Pod } from '@/api/types'
import { copy } from '@/copy/en'
import { useDeleteAccess } from '@/features/session/queries'
import { Switch } from '@/ui/field'
import { useSetRelaunch } from './queries'

/** Whether a pod that runs is started again on another cloud when its machine is lost. */
export function AutoRelaunch({ pod }: { pod: Pod }) {
  const { mutate } = useSetRelaunch(pod.team_id)
  const access = useDeleteAccess(copy.pods.signInToChange)(pod.created_by)
  if (pod.status !== 'ready') return null
  return (
    <Switch
      label={copy.pods.autoRelaunch}
      checked={pod.auto_relaunch}
      disabled={!access.can}
      title={access.can ? copy.pods.autoRelaunchHint : access.reason}
      onChange={(on) => mutate({ pod, on })}
    />
  )
}
