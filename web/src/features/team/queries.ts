import { queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { call } from '@/api/client'
import { detailOf } from '@/api/error'
import { removal, settled } from '@/api/optimistic'
import type { Invitation, Member } from '@/api/types'
import { copy } from '@/copy/en'
import { forgetTeam, useTeam } from '@/features/session/queries'
import { alertToast, toast } from '@/ui/toast'
import { withRole } from './model'

/** The members of a team, in the server's order. */
export const membersQuery = (teamId: string) =>
  queryOptions({
    queryKey: ['members', teamId],
    queryFn: async () => call('get', '/teams/{id}/members', { path: { id: teamId } }),
    staleTime: 60_000,
  })

/** Who was invited and has not joined yet. Pro teams only. */
export const invitationsQuery = (teamId: string) =>
  queryOptions({
    queryKey: ['invitations', teamId],
    queryFn: async () => call('get', '/teams/{id}/pending-invitations', { path: { id: teamId } }),
    staleTime: 60_000,
  })

/** The members of the team on stage. */
export function useMembers() {
  const { team } = useTeam()
  return useQuery({ ...membersQuery(team?.id ?? ''), enabled: team !== null })
}

/** The invitations of the team on stage; nothing is asked for teams that cannot invite. */
export function useInvitations() {
  const { team } = useTeam()
  return useQuery({ ...invitationsQuery(team?.id ?? ''), enabled: team?.plan === 'pro' })
}

/** Removes a member; one who left has to load everything anew, without that team. */
export function useRemoveMember(teamId: string) {
  const client = useQueryClient()
  const { queryKey } = membersQuery(teamId)
  return useMutation({
    mutationFn: async ({ member }: { member: Member; own: boolean }) =>
      call('delete', '/teams/{id}/members/{userId}', {
        path: { id: teamId, userId: member.user_id },
      }),
    onSuccess: (_done, { member, own }) => {
      if (own) leaveTeam()
      else client.setQueryData(queryKey, (old) => old?.filter((other) => other.id !== member.id))
    },
    onError: (error) => alertToast(copy.teams.removeFailed, detailOf(error, '')),
  })
}

/** Gives a member another role: it shows at once, and the old one again when the call fails. */
export function useSetRole(teamId: string) {
  const client = useQueryClient()
  const { queryKey } = membersQuery(teamId)
  const mutationKey = ['role', teamId]
  return useMutation({
    mutationKey,
    mutationFn: async ({ member, role }: { member: Member; role: Member['role'] }) =>
      call('patch', '/teams/{id}/members/{userId}', {
        path: { id: teamId, userId: member.user_id },
        body: { role },
      }),
    onMutate: async ({ member, role }) => {
      await client.cancelQueries({ queryKey })
      client.setQueryData(queryKey, (old) => withRole(old, member.id, role))
    },
    onError: (error, { member }) => {
      alertToast(copy.teams.roleFailed, detailOf(error, ''))
      client.setQueryData(queryKey, (old) => withRole(old, member.id, member.role))
    },
    onSettled: () => settled(client, mutationKey, queryKey),
  })
}

/** Takes an invitation back. */
export function useCancelInvitation(teamId: string) {
  const client = useQueryClient()
  return useMutation(
    removal(
      client,
      invitationsQuery(teamId).queryKey,
      async (invitation: Invitation) =>
        call('delete', '/teams/{id}/pending-invitations/{invitationId}', {
          path: { id: teamId, invitationId: invitation.id },
        }),
      (error) => alertToast(copy.teams.cancelFailed, detailOf(error, '')),
    ),
  )
}

/** Invites an address: a user joins at once, anybody else when they sign up. */
export function useInvite(teamId: string) {
  const client = useQueryClient()
  return useMutation({
    mutationFn: async (email: string) =>
      call('post', '/teams/{id}/invite', { path: { id: teamId }, body: { email } }),
    onSuccess: ({ status }) => {
      const accepted = status === 'accepted'
      toast(accepted ? copy.teams.inviteAdded : copy.teams.invitePending)
      const { queryKey } = accepted ? membersQuery(teamId) : invitationsQuery(teamId)
      return client.invalidateQueries({ queryKey })
    },
    onError: (error) => alertToast(detailOf(error, copy.teams.inviteFailed)),
  })
}

/** Gives the team another name; the shell shows it as soon as the team was read anew. */
export function useRenameTeam(teamId: string) {
  const client = useQueryClient()
  return useMutation({
    mutationFn: async (name: string) =>
      call('patch', '/teams/{id}', { path: { id: teamId }, body: { name } }),
    onSuccess: () => client.invalidateQueries({ queryKey: ['user-info'] }),
  })
}

/** Deletes a team and goes home, to the personal one. */
export function useDeleteTeam() {
  return useMutation({
    mutationFn: async (teamId: string) => call('delete', '/teams/{id}', { path: { id: teamId } }),
    onSuccess: leaveTeam,
    onError: (error) => alertToast(copy.teams.deleteFailed, detailOf(error, '')),
  })
}

function leaveTeam(): void {
  forgetTeam()
  location.assign('/')
}
