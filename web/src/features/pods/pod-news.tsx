import { clsx } from 'clsx'
import { CircleAlert } from 'lucide-react'
import type { Pod } from '@/api/types'
import { copy } from '@/copy/en'
import { TextLink } from '@/ui/button-link'
import { awaitsRelaunch, canRelaunch, endOf, isComing, transferOf } from './model'
import { Relaunch } from './relaunch'

/** What happens to a pod, why, and what to do about it. Nothing while all is as it should be. */
export function PodNews({ pod }: { pod: Pod }) {
  return (
    <>
      <Transfer pod={pod} />
      <Explanation pod={pod} />
    </>
  )
}

function Transfer({ pod }: { pod: Pod }) {
  const transfer = transferOf(pod)
  if (!transfer) return null
  const name = transfer.kind === 'restore' ? copy.pods.restoring : copy.pods.finalSync
  return (
    <div>
      <div className="flex justify-between gap-3 text-control">
        <span className="text-mid">{name}</span>
        <span className="num text-hi">{transfer.percent}%</span>
      </div>
      <div
        role="progressbar"
        aria-label={name}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={transfer.percent}
        className="mt-1.5 h-1.5 overflow-hidden rounded-full bg-ink-3"
      >
        <div
          className={clsx('h-full rounded-full', isComing(pod) ? 'bg-rig' : 'bg-warn')}
          style={{ width: `${transfer.percent}%` }}
        />
      </div>
    </div>
  )
}

function Explanation({ pod }: { pod: Pod }) {
  const end = endOf(pod)
  const detail = pod.status_detail
  if (!end && !detail) return null
  // Nothing is to be done about one whose place is taken, or is about to be.
  const cared = awaitsRelaunch(pod) || pod.relaunched_as !== null
  // Set-up and deletion go on by themselves: their news are no warnings.
  const warns = pod.status === 'ready' || (end !== null && end.reason !== 'user')
  return (
    <div className="flex gap-2.5 text-control">
      {warns ? (
        <CircleAlert
          size={15}
          aria-hidden="true"
          className={clsx('mt-[2.5px] shrink-0', pod.status === 'deleted' ? 'text-low' : 'text-warn')}
        />
      ) : null}
      <div className="wrap-anywhere min-w-0">
        {end ? (
          <p className={clsx(end.next && 'font-medium text-hi')}>{copy.pods.reasons[end.reason]}</p>
        ) : null}
        {detail ? <p>{detail}</p> : null}
        {detail && pod.status === 'ready' ? <p>{copy.pods.unsynced}</p> : null}
        {pod.relaunched_as === null ? null : <p>{copy.pods.relaunched(pod.relaunched_as.slice(0, 8))}</p>}
        {end?.next && !cared ? (
          <p className="mt-1">
            <TextLink to={end.next}>{copy.pods.next[end.reason]}</TextLink>
          </p>
        ) : null}
        {canRelaunch(pod) && !cared ? <Relaunch pod={pod} /> : null}
      </div>
    </div>
  )
}
