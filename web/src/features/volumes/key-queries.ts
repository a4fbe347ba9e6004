import { type QueryClient, useMutation, useQueryClient } from '@tanstack/react-query'
import { call } from '@/api/client'
import { detailOf } from '@/api/error'
import type { Volume } from '@/api/types'
import { copy } from '@/copy/en'
import { alertToast, toast } from '@/ui/toast'
import { folderKey, versionsQuery } from './files-queries'
import { volumesQuery } from './queries'

/** Opens a volume with the key that its team holds. */
export function useUnlock({ id, team_id }: Volume) {
  const client = useQueryClient()
  return useMutation({
    mutationFn: async (key: string) =>
      call('post', '/volumes/{id}/unlock', { path: { id }, query: { team_id }, body: { key } }),
    // Nothing remembers the key.
    gcTime: 0,
    onSuccess: (open) => {
      put(client, open)
      toast(copy.volumeKey.unlockDone(open.name))
    },
  })
}

/** Closes a volume that only its key opens again, and forgets what this page has read of it. */
export function useLock(volume: Volume) {
  const client = useQueryClient()
  const { id, team_id } = volume
  return useMutation({
    mutationFn: async () => call('post', '/volumes/{id}/lock', { path: { id }, query: { team_id } }),
    onSuccess: (closed) => {
      put(client, closed)
      client.removeQueries({ queryKey: versionsQuery(volume).queryKey })
      client.removeQueries({ queryKey: folderKey(id) })
      toast(copy.volumeKey.lockDone(closed.name))
    },
    onError: (error) => {
      alertToast(copy.volumeKey.lockFailed, detailOf(error, ''))
      return client.invalidateQueries({ queryKey: volumesQuery(team_id).queryKey })
    },
  })
}

function put(client: QueryClient, volume: Volume): void {
  client.setQueryData(volumesQuery(volume.team_id).queryKey, (old) =>
    old?.map((other) => (other.id === volume.id ? volume : other)),
  )
}
