import { reasonOf } from '@/api/error'
import { copy } from '@/copy/en'
import { useSession, useTeam } from '@/features/session/queries'
import { Badge } from '@/ui/badge'
import { TextLink } from '@/ui/button-link'
import { EmptyState } from '@/ui/empty-state'
import { ListError } from '@/ui/list-error'
import { Page } from '@/ui/page'
import { Skeleton } from '@/ui/spinner'
import { DangerZone } from './danger-zone'
import { Invitations } from './invitations'
import { InviteForm } from './invite-form'
import { MemberList } from './member-list'
import { capacityOf } from './model'
import { useMembers } from './queries'
import { Rename } from './rename'

/** The team on stage: who is in it, who may come, and its end. */
export function TeamPage() {
  const session = useSession()
  const { team: chosen, status } = useTeam()
  const { data: members, isPending, isFetching, isError, error, refetch } = useMembers()
  const userId = session.status === 'in' ? session.userId : ''
  // The list of members is the fresher one: a role may have changed since the team was read.
  const own = members?.find((member) => member.user_id === userId)
  const team = chosen && own ? { ...chosen, role: own.role } : chosen
  if (session.status !== 'in' || (!team && status === 'none')) {
    return (
      <Page title={copy.teams.title}>
        <EmptyState title={copy.teams.noTeam} />
        <InviteForm team={null} memberCount={0} />
        <DangerZone team={null} />
      </Page>
    )
  }
  return (
    <Page title={copy.teams.title} refreshing={isFetching && !isPending}>
      {team ? (
        <section aria-label={team.name} className="flex flex-wrap items-center gap-x-4 gap-y-1">
          <h2 className="wrap-anywhere font-semibold text-card">{team.name}</h2>
          {team.role === 'admin' ? <Rename team={team} /> : null}
          <Badge tone={team.plan === 'pro' ? 'beacon' : 'quiet'}>
            {team.plan === 'pro' ? copy.shell.plan.pro : copy.shell.plan.hobby}
          </Badge>
          {members ? (
            <p className="price flex items-baseline gap-2 text-control text-low sm:ml-auto">
              {copy.teams.seats}
              <span className="font-semibold text-card text-hi">
                {copy.teams.memberCount(members.length, capacityOf(team))}
              </span>
            </p>
          ) : null}
          {team.plan === 'pro' ? (
            <TextLink to="/billing" hash="plan" className="text-control">
              {copy.teams.managePlan}
            </TextLink>
          ) : null}
        </section>
      ) : null}
      {isError ? (
        <ListError
          text={copy.teams.failed}
          detail={reasonOf(error)}
          busy={isFetching}
          onRetry={() => void refetch()}
        />
      ) : null}
      {isPending && !isError ? <Skeleton className="h-52 rounded-card" /> : null}
      {team && members ? <MemberList team={team} members={members} /> : null}
      {team && (members || isError) ? (
        <>
          {team.plan === 'pro' ? <Invitations team={team} /> : null}
          <InviteForm team={team} memberCount={members?.length ?? 0} />
          <DangerZone team={team} />
        </>
      ) : null}
    </Page>
  )
}
