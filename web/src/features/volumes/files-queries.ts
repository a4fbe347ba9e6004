import { queryOptions, useMutation, useQueryClient } from '@tanstack/react-query'
import { address, call, send } from '@/api/client'
import { loadConfig } from '@/api/config'
import { ApiError, detailOf } from '@/api/error'
import type { Version, Volume } from '@/api/types'
import { copy } from '@/copy/en'
import { formatDateTime } from '@/lib/time'
import { alertToast, toast } from '@/ui/toast'
import { pageSize } from './files-model'
import { askedForKey, volumesQuery, withKey } from './queries'

/** The versions of a volume that are kept, newest first. */
export const versionsQuery = ({ id, team_id }: Volume) =>
  queryOptions({
    // Under the key of the volumes: what changes them changes their versions.
    queryKey: [...volumesQuery(team_id).queryKey, 'versions', id],
    queryFn: async () => call('get', '/volumes/{id}/versions', { path: { id }, query: { team_id } }),
    staleTime: 30_000,
  })

/** Reads again what failed. Where the volume has locked itself meanwhile, its key is asked for first. */
export function readAgain(volume: Volume, error: Error | null, read: () => void): void {
  if (!(error && askedForKey(error, volume, read))) withKey(volume, read)
}

/** A folder of one version. */
export interface Place {
  readonly volume: Volume
  readonly version: number
  /** As the API gives it; '' is /workspace. */
  readonly path: string
}

export const folderKey = (volumeId: string) => ['volume-files', volumeId] as const

/** A page of a folder. A version never changes. */
export const folderQuery = ({ volume: { id, team_id }, version, path }: Place, offset: number) =>
  queryOptions({
    queryKey: [...folderKey(id), version, path, offset],
    queryFn: async () =>
      call('get', '/volumes/{id}/versions/{version}/files', {
        path: { id, version: String(version) },
        query: { team_id, path, offset, limit: pageSize },
      }),
    staleTime: Number.POSITIVE_INFINITY,
  })

const routes = {
  file: '/volumes/{id}/versions/{version}/file',
  tar: '/volumes/{id}/versions/{version}/tar',
} as const

interface Download extends Place {
  readonly as: keyof typeof routes
}

/** Downloads a file, or a folder as tar, as large as they may be: the browser does it, by a plain link. */
export function useDownload() {
  const again = (what: Download): void => download.mutate(what)
  const download = useMutation({
    mutationFn: async ({ volume, version, path, as }: Download) => {
      const { apiBase } = await loadConfig()
      const url =
        apiBase +
        address(routes[as], { path: { id: volume.id, version }, query: { team_id: volume.team_id, path } })
      // A link cannot say why it leads nowhere: so that is asked for first.
      const look = await send(url, { method: 'HEAD', headers: {} })
      if (!look.ok) throw new ApiError(look.status, await reasonAt(url))
      await call('post', '/volumes/downloads', {}, { credentials: 'include' })
      const link = document.createElement('a')
      link.href = url
      link.download = ''
      link.click()
    },
    onError: (error, what) => {
      if (askedForKey(error, what.volume, () => again(what))) return
      alertToast(copy.files.downloadFailed, detailOf(error, ''))
    },
  })
  return download
}

async function reasonAt(url: string): Promise<unknown> {
  const stop = new AbortController()
  const response = await send(url, { headers: {}, signal: stop.signal })
  if (!response.ok) return response.json().catch(() => null)
  stop.abort() // it works by now; it is only tried again when asked
  return null
}

/** Makes a version the newest again; `onRestored` is called with the one that was made for it. */
export function useRestoreVersion(volume: Volume, onRestored: (made: Version) => void) {
  const client = useQueryClient()
  const { id, team_id } = volume
  const restore = (version: Version): void => mutation.mutate(version, { onSuccess: onRestored })
  const mutation = useMutation({
    mutationFn: async ({ version }: Version) =>
      call('post', '/volumes/{id}/versions/{version}/restore', {
        path: { id, version: String(version) },
        query: { team_id },
      }),
    onSuccess: (_, version) => toast(copy.files.restored(formatDateTime(version.created_at))),
    onError: (error, version) => {
      if (askedForKey(error, volume, () => restore(version))) return
      alertToast(copy.files.restoreFailed, detailOf(error, ''))
    },
    onSettled: () => client.invalidateQueries({ queryKey: volumesQuery(team_id).queryKey }),
  })
  return { restore, restoring: mutation.isPending }
}
