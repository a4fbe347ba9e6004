import { type QueryClient, queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { call } from '@/api/client'
import { detailOf } from '@/api/error'
import { settled } from '@/api/optimistic'
import type { CreatePod, Pod } from '@/api/types'
import { copy } from '@/copy/en'
import { useSession, useTeam } from '@/features/session/queries'
import { askedForKey, volumesQuery } from '@/features/volumes/queries'
import { balanceQuery, noticesKey, transactionsQuery } from '@/features/wallet/queries'
import { newestFirst } from '@/lib/time'
import { alertToast } from '@/ui/toast'
import { mutedPods, setChime } from './chime-options'
import { asDeleting, shouldPoll, tempPod, withPending } from './model'

const refreshEvery = 30_000
/** The pods whose DELETE is under way: a list read meanwhile may still call them ready. */
const leaving = new Set<string>()
const podsKey = (teamId: string) => ['pods', teamId] as const

/** The pods of a team, newest first, read again every 30 s while one of them is on its way somewhere. */
export const podsQuery = (teamId: string) =>
  queryOptions({
    queryKey: podsKey(teamId),
    queryFn: async ({ client }) => {
      const fresh = await call('get', '/pods', { query: { team_id: teamId } })
      return withPending(client.getQueryData<Pod[]>(podsKey(teamId)), fresh, leaving)
    },
    select: (pods) => newestFirst(pods),
    staleTime: 5 * 60_000,
    refetchInterval: (query) => (shouldPoll(query.state.data) ? refreshEvery : false),
    refetchOnWindowFocus: true,
  })

/** The pods of the team on stage. */
export function usePods(enabled = true) {
  const { team } = useTeam()
  return useQuery({ ...podsQuery(team?.id ?? ''), enabled: enabled && team !== null })
}

/** A quick cloud is done long before the next regular reading: these catch it. */
const soon = [1_500, 4_000, 10_000]
/** A lost pod is looked after every 15 s: this is after the next look. */
const lookedAfter = [1_500, 17_000]

/** Reads pods, volumes, the wallet and what is told of it again shortly after an order or a deletion. */
function followUp(client: QueryClient, teamId: string, delays = soon): void {
  for (const delay of delays) {
    setTimeout(() => {
      void client.invalidateQueries({ queryKey: podsKey(teamId) })
      void client.invalidateQueries({ queryKey: volumesQuery(teamId).queryKey })
      void client.invalidateQueries({ queryKey: balanceQuery(teamId).queryKey })
      void client.invalidateQueries({ queryKey: transactionsQuery(teamId).queryKey })
      void client.invalidateQueries({ queryKey: noticesKey(teamId) })
    }, delay)
  }
}

let temps = 0

/** Orders a pod. It stands in the list at once under a temporary id, and leaves it when the order fails. */
export function useCreatePod(teamId: string) {
  const client = useQueryClient()
  const session = useSession()
  const queryKey = podsKey(teamId)
  const replace = (tempId: string, pod: Pod | null) =>
    client.setQueryData<Pod[]>(queryKey, (old) => [
      ...(pod ? [pod] : []),
      ...(old ?? []).filter((other) => other.id !== tempId && other.id !== pod?.id),
    ])
  const again = (order: CreatePod): void => create.mutate(order)
  const create = useMutation({
    mutationFn: async (order: CreatePod) => call('post', '/pods', { body: order }),
    onMutate: (order) => {
      temps += 1
      const temp = tempPod(order, temps, session.status === 'in' ? session.userId : '', new Date())
      client.setQueryData<Pod[]>(queryKey, (old) => [temp, ...(old ?? [])])
      return temp.id
    },
    onSuccess: (pod, _order, tempId) => {
      // What was chosen on the temporary card holds for the pod.
      if (mutedPods.get().includes(tempId)) setChime(pod.id, false)
      replace(tempId, pod)
      followUp(client, teamId)
    },
    onError: (error, order, tempId) => {
      if (tempId) replace(tempId, null)
      const volumes = client.getQueryData(volumesQuery(teamId).queryKey)
      const volume = volumes?.find(({ id }) => id === order.volume_id)
      if (askedForKey(error, volume, () => again(order))) return
      alertToast(detailOf(error, copy.create.postFailed))
    },
    onSettled: () =>
      Promise.all([
        client.invalidateQueries({ queryKey }),
        client.invalidateQueries({ queryKey: volumesQuery(teamId).queryKey }),
      ]),
  })
  return create
}

/** Deletes a pod: it shows as deleting at once, and as what it was when the call fails. */
export function useDeletePod(teamId: string) {
  const client = useQueryClient()
  const queryKey = podsKey(teamId)
  const mutationKey = ['remove', ...queryKey]
  const put = (row: Pod) =>
    client.setQueryData<Pod[]>(queryKey, (old) => old?.map((pod) => (pod.id === row.id ? row : pod)))
  return useMutation({
    mutationKey,
    mutationFn: async ({ id }: Pod) =>
      call('delete', '/pods/{id}', { path: { id }, query: { team_id: teamId } }),
    onMutate: async (pod) => {
      leaving.add(pod.id)
      await client.cancelQueries({ queryKey })
      put(asDeleting(pod))
    },
    onSuccess: () => followUp(client, teamId),
    onError: (error, pod) => {
      put(pod)
      const detail = detailOf(error, '')
      alertToast(detail ? copy.pods.deleteError(detail) : copy.pods.deleteFailed)
    },
    onSettled: (_data, _error, pod) => {
      leaving.delete(pod.id)
      return settled(client, mutationKey, queryKey)
    },
  })
}

/** Says whether a pod is started again when its machine is lost: shown at once, and undone when the call fails. */
export function useSetRelaunch(teamId: string) {
  const client = useQueryClient()
  const queryKey = podsKey(teamId)
  const mutationKey = ['relaunch', ...queryKey]
  const put = (row: Pod, on: boolean) =>
    client.setQueryData<Pod[]>(queryKey, (old) =>
      old?.map((pod) => (pod.id === row.id ? { ...pod, auto_relaunch: on } : pod)),
    )
  return useMutation({
    mutationKey,
    mutationFn: async ({ pod, on }: { pod: Pod; on: boolean }) =>
      call('patch', '/pods/{id}', {
        path: { id: pod.id },
        query: { team_id: teamId },
        body: { auto_relaunch: on },
      }),
    onMutate: async ({ pod, on }) => {
      await client.cancelQueries({ queryKey })
      put(pod, on)
    },
    onSuccess: (_, { pod }) => {
      // What its card says of the new start follows.
      if (pod.status === 'deleted') followUp(client, teamId, lookedAfter)
    },
    onError: (error, { pod, on }) => {
      put(pod, !on)
      alertToast(detailOf(error, copy.pods.changeFailed))
    },
    onSettled: () => settled(client, mutationKey, queryKey),
  })
}
