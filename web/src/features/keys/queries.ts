import { queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { call } from '@/api/client'
import { detailOf } from '@/api/error'
import { removal } from '@/api/optimistic'
import type { SSHKey } from '@/api/types'
import { copy } from '@/copy/en'
import { useTeam } from '@/features/session/queries'
import { newestFirst } from '@/lib/time'
import { openModal } from '@/ui/modal-store'
import { alertToast } from '@/ui/toast'

const freshFor = 5 * 60_000

/** The SSH keys of a team, newest first. */
export const keysQuery = (teamId: string) =>
  queryOptions({
    queryKey: ['ssh-keys', teamId],
    queryFn: async () => call('get', '/ssh-keys', { query: { team_id: teamId } }),
    select: (keys) => newestFirst(keys),
    staleTime: freshFor,
  })

/** The SSH keys of the team on stage. */
export function useKeys(enabled = true) {
  const { team } = useTeam()
  return useQuery({ ...keysQuery(team?.id ?? ''), enabled: enabled && team !== null })
}

/** Adds a key to the team. A key the team has already comes back as the row that is there. */
export function useCreateKey(teamId: string) {
  const client = useQueryClient()
  const { queryKey } = keysQuery(teamId)
  return useMutation({
    mutationFn: async (key: { name: string; publicKey: string }) =>
      call('post', '/ssh-keys', {
        body: { name: key.name, public_key: key.publicKey, team_id: teamId },
      }),
    onMutate: () =>
      openModal({ type: 'loading', title: copy.keys.creating, message: copy.keys.creatingText }),
    onSuccess: (key) => {
      client.setQueryData(queryKey, (old) => [key, ...(old ?? []).filter((other) => other.id !== key.id)])
      openModal({
        type: 'success',
        title: copy.keys.created,
        message: copy.keys.createdText(key.name),
        redirectTo: '/create',
        redirectLabel: copy.create.title,
      })
    },
    onError: (error) =>
      openModal({
        type: 'error',
        title: copy.keys.createTitle,
        message: copy.keys.createError(detailOf(error, copy.keys.createFailed)),
      }),
  })
}

/** Deletes a key: it leaves the list at once and comes back when the call fails. */
export function useDeleteKey(teamId: string) {
  const client = useQueryClient()
  return useMutation(
    removal(
      client,
      keysQuery(teamId).queryKey,
      async ({ id }: SSHKey) =>
        call('delete', '/ssh-keys/{id}', { path: { id }, query: { team_id: teamId } }),
      (error) => alertToast(detailOf(error, copy.keys.deleteFailed)),
    ),
  )
}
