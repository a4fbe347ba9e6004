import { RotateCcw } from 'lucide-react'
import type { Pod } from '@/api/types'
import { copy } from '@/copy/en'
import { orderFor, useResources } from '@/features/offers/queries'
import { useCreateAccess } from '@/features/session/queries'
import { useVolumes, withKey } from '@/features/volumes/queries'
import { formatRate } from '@/lib/money'
import { Button } from '@/ui/button'
import { sameAgain, volumeTaken } from './model'
import { useCreatePod, usePods } from './queries'

/** Rents the same GPUs with the same volume and key again, in one click; what that costs now is said before. */
export function Relaunch({ pod }: { pod: Pod }) {
  const { data, isPending, isLoadingError } = useResources()
  const { data: pods } = usePods()
  const { data: volumes } = useVolumes()
  const { mutate, isPending: ordering } = useCreatePod(pod.team_id)
  const access = useCreateAccess(copy.create.signIn)
  const offer = sameAgain(pod, data?.[pod.gpu_type])
  const reason = access.can ? missing() : access.reason
  function missing(): string | undefined {
    if (volumeTaken(pod, pods ?? [])) return copy.pods.volumeTaken
    if (isLoadingError) return copy.create.failed
    return offer || isPending ? undefined : copy.pods.noSuchOffer
  }
  return (
    <Button
      size="small"
      className="mt-2"
      icon={<RotateCcw size={14} aria-hidden="true" />}
      busy={ordering}
      disabled={offer === null || reason !== undefined}
      title={reason}
      onClick={() => {
        if (!offer) return
        const order = orderFor(offer, pod.team_id, pod.volume_id, pod.ssh_key_id)
        withKey(
          volumes?.find(({ id }) => id === pod.volume_id),
          () => mutate({ ...order, relaunch_of: pod.id, ...(pod.auto_relaunch && { auto_relaunch: true }) }),
        )
      }}
    >
      {offer ? copy.pods.relaunchFor(formatRate(offer.price)) : copy.pods.relaunch}
    </Button>
  )
}
