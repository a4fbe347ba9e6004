import { clsx } from 'clsx'
import { Trash2 } from 'lucide-react'
import type { Pod } from '@/api/types'
import { copy } from '@/copy/en'
import { useDeleteAccess } from '@/features/session/queries'
import { formatRate } from '@/lib/money'
import { gpuName } from '@/lib/names'
import { formatDateTime, formatUptime } from '@/lib/time'
import { StatusChip } from '@/ui/badge'
import { Berths } from '@/ui/berths'
import { Button } from '@/ui/button'
import { openModal } from '@/ui/modal-store'
import { useNow } from '@/ui/now'
import { AutoRelaunch } from './auto-relaunch'
import { countAndType, deleteBlock, phases, phaseTones, uptimeOf } from './model'
import { PodAccess } from './pod-access'
import { PodFacts } from './pod-facts'
import { PodNews } from './pod-news'
import { useDeletePod } from './queries'

/** One pod: what it is, what it costs, how to get in. */
export function PodCard({ pod }: { pod: Pod }) {
  const phase = phases[pod.status]
  const gone = phase === 'deleted'
  return (
    <article
      aria-labelledby={`pod-${pod.id}`}
      tabIndex={-1}
      data-status={pod.status}
      className={clsx('card flex h-full flex-col', gone && 'bg-transparent')}
    >
      <div className="flex items-center gap-3 px-4 pt-4 sm:px-5">
        <StatusChip tone={phaseTones[phase]} moving={phase !== 'ready' && phase !== 'deleted'}>
          {copy.pods.status[phase]}
        </StatusChip>
        <Uptime pod={pod} />
      </div>
      <div className="flex items-end gap-4 px-4 pt-3.5 pb-4 sm:px-5">
        <div className="min-w-0">
          <h2
            id={`pod-${pod.id}`}
            data-gpu-type={pod.gpu_type}
            className={clsx('wrap-anywhere font-semibold text-title', gone && 'text-low')}
          >
            {pod.gpu_count}x {gpuName(pod.gpu_type)}
          </h2>
          <Berths
            count={gone ? 0 : pod.gpu_count}
            label={copy.offer.berths(pod.gpu_count)}
            className="mt-2.5"
          />
        </div>
        <p
          className={clsx(
            'price ml-auto whitespace-nowrap font-semibold text-title',
            gone ? 'text-low' : 'text-hi',
          )}
        >
          {formatRate(pod.price)}
          <span className="font-normal text-control text-low">{copy.pods.perHour}</span>
        </p>
      </div>
      <div className="flex flex-1 flex-col gap-4 border-line-1 border-t px-4 py-4 sm:px-5">
        <PodAccess pod={pod} />
        <PodNews pod={pod} />
        <AutoRelaunch pod={pod} />
        <div className="mt-auto flex items-end gap-3 sm:gap-4">
          <PodFacts pod={pod} />
          <DeleteButton pod={pod} />
        </div>
      </div>
    </article>
  )
}

function Uptime({ pod }: { pod: Pod }) {
  const now = useNow()
  const milliseconds = uptimeOf(pod, now)
  const wholeHours = Math.floor(milliseconds / 3_600_000) * 3_600_000
  return (
    <p
      className="num ml-auto text-control text-low"
      title={copy.pods.created(formatDateTime(pod.created_at))}
    >
      <span aria-hidden="true">{formatUptime(milliseconds)}</span>
      {/* A reader of the screen hears hours only: a text that changes each second is noise. */}
      <span className="sr-only">
        {copy.pods.upFor(formatUptime(wholeHours || milliseconds).replace(/ 0m.*$/, ''))}
      </span>
    </p>
  )
}

function DeleteButton({ pod }: { pod: Pod }) {
  const { mutate } = useDeletePod(pod.team_id)
  const access = useDeleteAccess(copy.pods.signInToDelete)(pod.created_by)
  const block = deleteBlock(pod)
  const reason = block ? copy.pods.deleteBlocked[block] : access.can ? undefined : access.reason
  const ask = () =>
    openModal({
      type: 'info',
      title: copy.pods.deleteTitle,
      message: copy.pods.deleteMessage(countAndType(pod)),
      actions: [
        { label: copy.app.cancel },
        { label: copy.app.delete, variant: 'alarm', onClick: () => mutate(pod) },
      ],
    })
  return (
    <Button
      kind="danger"
      size="small"
      icon={<Trash2 size={14} aria-hidden="true" />}
      disabled={reason !== undefined}
      title={reason}
      onClick={ask}
    >
      {copy.app.delete}
    </Button>
  )
}
