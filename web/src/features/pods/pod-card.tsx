import { clsx } from 'clsx'
import { HardDrive, MapPin, Trash2 } from 'lucide-react'
import type { Pod } from '@/api/types'
import { copy } from '@/copy/en'
import { useDeleteAccess } from '@/features/session/queries'
import { useVolumes } from '@/features/volumes/queries'
import { gpuName } from '@/lib/gpu'
import { formatRate } from '@/lib/money'
import { formatDateTime, formatUptime } from '@/lib/time'
import { StatusChip } from '@/ui/badge'
import { Berths } from '@/ui/berths'
import { Button } from '@/ui/button'
import { openModal } from '@/ui/modal-store'
import { useNow } from '@/ui/now'
import { countAndType, deleteBlock, isComing, phases, phaseTones, uptimeOf } from './model'
import { PodAccess } from './pod-access'
import { useDeletePod } from './queries'

/** One pod: what it is, what it costs, how to get in. */
export function PodCard({ pod }: { pod: Pod }) {
  const phase = phases[pod.status]
  const gone = phase === 'deleted'
  return (
    <article
      aria-labelledby={`pod-${pod.id}`}
      data-status={pod.status}
      className={clsx('card flex h-full flex-col', gone && 'bg-transparent')}
    >
      <div className="flex items-center gap-3 px-5 pt-4">
        <StatusChip tone={phaseTones[phase]} moving={phase !== 'ready' && phase !== 'deleted'}>
          {copy.pods.status[phase]}
        </StatusChip>
        <Uptime pod={pod} />
      </div>
      <div className="flex items-end gap-4 px-5 pt-3.5 pb-4">
        <div className="min-w-0">
          <h2
            id={`pod-${pod.id}`}
            data-gpu-type={pod.gpu_type}
            className={clsx('wrap-anywhere font-semibold text-title', gone && 'text-low')}
          >
            {pod.gpu_count}x {gpuName(pod.gpu_type)}
          </h2>
          <Berths count={gone ? 0 : pod.gpu_count} label={copy.pods.gpus(pod.gpu_count)} className="mt-2.5" />
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
      <div className="flex flex-1 flex-col gap-3 border-line-1 border-t px-5 py-4">
        <PodAccess pod={pod} />
        <Progress pod={pod} />
        {pod.status_detail ? <p className="wrap-anywhere text-control">{pod.status_detail}</p> : null}
        <Footer pod={pod} />
      </div>
    </article>
  )
}

function Uptime({ pod }: { pod: Pod }) {
  const now = useNow()
  const milliseconds = uptimeOf(pod, now)
  const wholeHours = Math.floor(milliseconds / 3_600_000) * 3_600_000
  return (
    <p className="num ml-auto text-control text-low" title={copy.pods.uptime}>
      <span aria-hidden="true">{formatUptime(milliseconds)}</span>
      {/* A reader of the screen hears hours only: a text that changes each second is noise. */}
      <span className="sr-only">
        {copy.pods.upFor(formatUptime(wholeHours || milliseconds).replace(/ 0m.*$/, ''))}
      </span>
    </p>
  )
}

function Progress({ pod }: { pod: Pod }) {
  const shown =
    (pod.status === 'mounting' || pod.status === 'deleting' || pod.status === 'switching_off') &&
    pod.progress > 0
  if (!shown) return null
  return (
    <div className="grid grid-cols-[1fr_auto] items-center gap-3">
      <div
        role="progressbar"
        aria-label={copy.pods.progress}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={pod.progress}
        className="h-1.5 overflow-hidden rounded-full bg-ink-3"
      >
        <div
          className={clsx('h-full rounded-full', isComing(pod) ? 'bg-rig' : 'bg-warn')}
          style={{ width: `${pod.progress}%` }}
        />
      </div>
      <span className="num text-meta text-mid">{pod.progress}%</span>
    </div>
  )
}

function Footer({ pod }: { pod: Pod }) {
  const { data: volumes } = useVolumes()
  const volume = volumes?.find((each) => each.id === pod.volume_id)
  const place = [pod.provider, pod.country].filter(Boolean).join(', ')
  return (
    <div className="mt-auto flex items-end gap-3">
      <ul className="grid min-w-0 flex-1 grid-cols-1 gap-1 text-low text-meta">
        <li className="flex min-w-0 items-center gap-1.5">
          <HardDrive size={13} aria-hidden="true" className="shrink-0" />
          <span className="truncate text-mid">{volume?.name ?? copy.pods.volume}</span>
          <span className="num">/workspace</span>
        </li>
        {place ? (
          <li className="flex min-w-0 items-center gap-1.5">
            <MapPin size={13} aria-hidden="true" className="shrink-0" />
            <span className="truncate">{place}</span>
          </li>
        ) : null}
        {pod.synced_at ? (
          <li className="truncate">{copy.pods.synced(formatDateTime(pod.synced_at))}</li>
        ) : null}
      </ul>
      <DeleteButton pod={pod} />
    </div>
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
