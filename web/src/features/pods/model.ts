import type { CreatePod, Offer, Pod, PodStatus } from '@/api/types'
import { newestFirst } from '@/lib/time'
import type { Tone } from '@/ui/badge'

/** What the reader sees of a status; starting and mounting look alike. */
export type Phase = 'pending' | 'setup' | 'ready' | 'switching_off' | 'deleting' | 'deleted'

export const phases: Record<PodStatus, Phase> = {
  pending: 'pending',
  starting: 'setup',
  mounting: 'setup',
  ready: 'ready',
  switching_off: 'switching_off',
  deleting: 'deleting',
  deleted: 'deleted',
}

export const phaseTones: Record<Phase, Tone> = {
  pending: 'tide',
  setup: 'rig',
  ready: 'ready',
  switching_off: 'warn',
  deleting: 'warn',
  deleted: 'quiet',
}

const tempPrefix = 'temp-'

/** A pod that only this page knows: its POST has not been answered yet. */
export function isTemp(pod: Pick<Pod, 'id'>): boolean {
  return pod.id.startsWith(tempPrefix)
}

/** On its way to ready. */
export function isComing(pod: Pick<Pod, 'status'>): boolean {
  return phases[pod.status] === 'pending' || phases[pod.status] === 'setup'
}

type Lost = Pick<Pod, 'status' | 'auto_relaunch' | 'relaunch_pending'>

/** Whether a pod whose machine was lost is about to be started again by itself. */
export function awaitsRelaunch(pod: Lost): boolean {
  return pod.relaunch_pending && pod.auto_relaunch
}

/** Whether the list is worth asking for again by itself; a deleted pod that nothing follows changes no more. */
export function shouldPoll(pods: readonly Lost[] | undefined): boolean {
  return (pods ?? []).some((pod) => (pod.status === 'deleted' ? awaitsRelaunch(pod) : pod.status !== 'ready'))
}

/** Why a pod cannot be deleted now, or null. */
export function deleteBlock(
  pod: Pick<Pod, 'id' | 'status'>,
): 'temp' | 'deleting' | 'deleted' | 'switching_off' | null {
  if (isTemp(pod)) return 'temp'
  const { status } = pod
  return status === 'deleting' || status === 'deleted' || status === 'switching_off' ? status : null
}

/** Where a reader goes after a pod was ended for them; a reason that is not here needs no doing, or is not known yet. */
const remedies = {
  balance: '/billing',
  spend_limit: '/billing',
  setup_failed: '/create',
  machine_lost: '/create',
  volume_damaged: '/storage',
} as const

type Remedy = keyof typeof remedies

/** Why a pod ends or has ended, and where to go now. Null for pods that live. */
export function endOf(
  pod: Pick<Pod, 'status' | 'status_reason'>,
): { reason: 'user'; next: null } | { reason: Remedy; next: (typeof remedies)[Remedy] } | null {
  const { status, status_reason: reason } = pod
  if (status !== 'switching_off' && status !== 'deleted') return null
  if (reason === 'user') return { reason, next: null }
  return isRemedy(reason) ? { reason, next: remedies[reason] } : null
}

function isRemedy(reason: string): reason is Remedy {
  return Object.hasOwn(remedies, reason)
}

const landed: readonly string[] = ['balance', 'spend_limit', 'machine_lost']

/**
 * Whether a pod ended although nobody asked for it: its user may want the same again, once. One that never
 * was up counts if it was to take the place of another, whose place it holds now.
 */
export function canRelaunch(
  pod: Pick<Pod, 'status' | 'status_reason' | 'relaunch_of' | 'relaunched_as'>,
): boolean {
  const { status_reason: reason } = pod
  const was = landed.includes(reason) || (reason === 'setup_failed' && pod.relaunch_of !== null)
  return pod.status === 'deleted' && was && pod.relaunched_as === null
}

/** The offer that is most like what a pod had: the same GPUs, at the same place if it is there, the cheapest. */
export function sameAgain(
  pod: Pick<Pod, 'gpu_count' | 'provider' | 'country'>,
  offers: readonly Offer[] | undefined,
): Offer | null {
  const far = (offer: Offer) =>
    Number(offer.isSpot) * 4 +
    Number(offer.provider !== pod.provider) * 2 +
    Number(offer.country !== pod.country)
  const [best] = (offers ?? [])
    .filter((offer) => offer.gpuCount === pod.gpu_count)
    .sort((a, b) => far(a) - far(b) || a.price - b.price)
  return best ?? null
}

/** Whether another pod of the list holds the volume that a pod had: a volume has one writer at a time. */
export function volumeTaken(
  pod: Pick<Pod, 'id' | 'volume_id'>,
  pods: readonly Pick<Pod, 'id' | 'volume_id' | 'status'>[],
): boolean {
  return pods.some(
    (other) => other.id !== pod.id && other.volume_id === pod.volume_id && other.status !== 'deleted',
  )
}

/** What is on its way to or from the volume, in percent: the restore, or the last sync of a pod that was ready. */
export function transferOf(
  pod: Pick<Pod, 'status' | 'ready_at' | 'progress'>,
): { kind: 'restore' | 'finalSync'; percent: number } | null {
  const percent = Math.min(100, Math.max(0, pod.progress))
  if (pod.status === 'mounting') return { kind: 'restore', percent }
  const ending = pod.status === 'deleting' || pod.status === 'switching_off'
  return ending && pod.ready_at !== null ? { kind: 'finalSync', percent } : null
}

/** The command that opens a ready pod, or null while it has no port. */
export function sshCommand(
  pod: Pick<Pod, 'id' | 'ssh_host' | 'ssh_port'>,
  fallbackHost: string,
): string | null {
  if (!pod.ssh_port) return null
  const [segment = ''] = pod.id.split('-')
  const host = pod.ssh_host || fallbackHost
  return `ssh -p ${pod.ssh_port} root@${host.startsWith(`${segment}.`) ? host : `${segment}.${host}`}`
}

/** How long a pod has been up; the clock of a deleted one stands still. */
export function uptimeOf(pod: Pick<Pod, 'created_at' | 'ended_at'>, now: number): number {
  return (pod.ended_at ? Date.parse(pod.ended_at) : now) - Date.parse(pod.created_at)
}

/** A refreshed list keeps the pods whose POST is under way, and shows as deleting those whose DELETE is. */
export function withPending(
  cached: readonly Pod[] | undefined,
  fresh: readonly Pod[],
  leaving: ReadonlySet<string>,
): Pod[] {
  const rows = fresh.map((pod) => (leaving.has(pod.id) && !deleteBlock(pod) ? asDeleting(pod) : pod))
  return newestFirst([...(cached ?? []).filter(isTemp), ...rows])
}

/** A pod as it stands while its DELETE is under way: its last sync has not begun. */
export function asDeleting(pod: Pod): Pod {
  return { ...pod, status: 'deleting', progress: 0 }
}

/** The pods that were coming and are ready now. */
export function becameReady(before: readonly Pod[], after: readonly Pod[]): Pod[] {
  const coming = new Set(before.filter(isComing).map((pod) => pod.id))
  return after.filter((pod) => pod.status === 'ready' && coming.has(pod.id))
}

/** What stands in the list until the server has answered. */
export function tempPod(order: CreatePod, number: number, userId: string, now: Date): Pod {
  return {
    id: `${tempPrefix}${number}`,
    team_id: order.team_id,
    status: 'pending',
    status_reason: '',
    status_detail: '',
    progress: 0,
    created_at: now.toISOString(),
    ready_at: null,
    delete_requested_at: null,
    synced_at: null,
    metered_until: null,
    ended_at: null,
    gpu_count: order.gpu_count,
    gpu_type: order.gpu_type,
    provider: order.provider,
    country: order.country ?? '',
    price: order.price,
    ssh_host: '',
    ssh_port: null,
    host_key_fingerprint: '',
    volume_id: order.volume_id,
    ssh_key_id: order.ssh_key_id,
    created_by: userId,
    auto_relaunch: order.auto_relaunch ?? false,
    relaunch_of: order.relaunch_of ?? null,
    relaunch_pending: false,
    relaunched_as: null,
  }
}

/** '2xA100_80GB': how messages name a configuration. */
export function countAndType(pod: Pick<Pod, 'gpu_count' | 'gpu_type'>): string {
  return `${pod.gpu_count}x${pod.gpu_type}`
}
