import { queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { call } from '@/api/client'
import { ApiError, detailOf } from '@/api/error'
import { removal } from '@/api/optimistic'
import type { Volume } from '@/api/types'
import { copy } from '@/copy/en'
import { useTeam } from '@/features/session/queries'
import { createStore } from '@/lib/store'
import { newestFirst } from '@/lib/time'
import { openModal } from '@/ui/modal-store'
import { alertToast, toast } from '@/ui/toast'
import { someWillLock } from './model'

const freshFor = 5 * 60_000
const lockLookEvery = 60_000

/** The volumes of a team that are not deleted, newest first. What locks itself is looked after. */
export const volumesQuery = (teamId: string) =>
  queryOptions({
    queryKey: ['volumes', teamId],
    queryFn: async () => call('get', '/volumes', { query: { team_id: teamId } }),
    select: listed,
    staleTime: freshFor,
    refetchInterval: (query) => (someWillLock(query.state.data) ? lockLookEvery : false),
  })

/** The volumes of the team on stage. */
export function useVolumes(enabled = true) {
  const { team } = useTeam()
  return useQuery({ ...volumesQuery(team?.id ?? ''), enabled: enabled && team !== null })
}

/** What waits for the key of a locked volume. The shell shows the dialog that asks for it. */
export interface KeyWanted {
  readonly volume: Volume
  /** Is called once the volume is open. */
  readonly act: () => void
  /** It was open when the reader asked for that, and has locked itself since. */
  readonly meanwhile?: boolean
}

export const keyWanted = createStore<KeyWanted | null>(null)

/** Does what needs the files of a volume: at once, or once its key was given where it is locked. */
export function withKey(volume: Volume | undefined, act: () => void): void {
  if (volume?.locked) keyWanted.set({ volume, act })
  else act()
}

/**
 * Asks for the key where something was refused because its volume has locked itself, which no list may have told
 * yet; what was refused is done again then. False for every other refusal.
 */
export function askedForKey(error: Error, volume: Volume | undefined, again: () => void): boolean {
  if (!(error instanceof ApiError && error.code === 'volume_locked' && volume)) return false
  keyWanted.set({ volume: { ...volume, locked: true }, act: again, meanwhile: true })
  return true
}

interface NewVolume {
  readonly name: string
  /** For a volume that only its team can open. */
  readonly key: string | null
}

/** Makes a volume and puts it into the list. */
export function useCreateVolume(teamId: string) {
  const client = useQueryClient()
  const { queryKey } = volumesQuery(teamId)
  return useMutation({
    mutationFn: async ({ name, key }: NewVolume) =>
      call('post', '/volumes', { body: { name, team_id: teamId, ...(key === null ? {} : { key }) } }),
    // Nothing remembers the key.
    gcTime: 0,
    onMutate: () =>
      openModal({ type: 'loading', title: copy.storage.creating, message: copy.storage.creatingText }),
    onSuccess: (volume) => {
      client.setQueryData(queryKey, (old) => [volume, ...(old ?? [])])
      openModal({
        type: 'success',
        title: copy.storage.created,
        message: copy.storage.createdText(volume.name),
        redirectTo: '/create',
        redirectLabel: copy.create.title,
      })
    },
    onError: (error) =>
      openModal({
        type: 'error',
        title: copy.storage.createTitle,
        message: copy.storage.createError(detailOf(error, copy.storage.createFailed)),
      }),
  })
}

/** Deletes a volume: it leaves the list at once and comes back when the call fails. */
export function useDeleteVolume(teamId: string) {
  const client = useQueryClient()
  return useMutation(
    removal(
      client,
      volumesQuery(teamId).queryKey,
      async ({ id }: Volume) => call('delete', '/volumes/{id}', { path: { id }, query: { team_id: teamId } }),
      (error) => {
        const detail = detailOf(error, '')
        alertToast(detail ? copy.storage.deleteError(detail) : copy.storage.deleteFailed)
      },
    ),
  )
}

/** The trash of a team, the last deleted first. Read when somebody looks. */
const trashQuery = (teamId: string) =>
  queryOptions({
    // Under the key of the volumes: what changes them changes the trash.
    queryKey: [...volumesQuery(teamId).queryKey, 'trash'],
    queryFn: async () => call('get', '/volumes', { query: { team_id: teamId, deleted: true } }),
    staleTime: freshFor,
  })

/** The trash of the team on stage. */
export function useTrash(enabled: boolean) {
  const { team } = useTeam()
  return useQuery({ ...trashQuery(team?.id ?? ''), enabled: enabled && team !== null })
}

/** Takes a volume out of the trash. */
export function useRestoreVolume(teamId: string) {
  const client = useQueryClient()
  const { queryKey } = volumesQuery(teamId)
  return useMutation({
    mutationFn: async ({ id }: Volume) =>
      call('post', '/volumes/{id}/restore', { path: { id }, query: { team_id: teamId } }),
    onSuccess: (volume) => {
      client.setQueryData(queryKey, (old) => [volume, ...(old ?? []).filter(({ id }) => id !== volume.id)])
      client.setQueryData(trashQuery(teamId).queryKey, (old) => old?.filter(({ id }) => id !== volume.id))
      toast(copy.storage.restored(volume.name))
    },
    onError: (error) => alertToast(copy.storage.restoreFailed, detailOf(error, '')),
    onSettled: () => client.invalidateQueries({ queryKey }),
  })
}

function listed(volumes: readonly Volume[]): Volume[] {
  return newestFirst(volumes.filter((volume) => !volume.deleted))
}
