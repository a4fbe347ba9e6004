import type { Member, Team } from '@/api/types'
import { copy } from '@/copy/en'
import { useSession } from '@/features/session/queries'
import { Badge } from '@/ui/badge'
import { Button } from '@/ui/button'
import { openModal } from '@/ui/modal-store'
import { MemberRole } from './member-role'
import { removalBlock } from './model'
import { useRemoveMember } from './queries'

const blocks = {
  personal: copy.teams.removePersonal,
  last: copy.teams.removeLast,
  self: copy.teams.removeSelf,
  admins: copy.app.adminsOnly,
}

/** The members with their roles. */
export function MemberList({ team, members }: { team: Team; members: readonly Member[] }) {
  const session = useSession()
  const userId = session.status === 'in' ? session.userId : ''
  return (
    <section>
      <h2 className="mb-3 font-medium text-lead tracking-normal">{copy.teams.members}</h2>
      <ul className="card divide-y divide-line-1">
        {members.map((member) => (
          <li key={member.id} className="flex flex-wrap items-center gap-x-4 gap-y-2 px-5 py-3">
            <span className="wrap-anywhere min-w-0 flex-1 basis-52 text-hi">
              {member.email}
              {member.user_id === userId ? <Badge className="ml-2">{copy.teams.you}</Badge> : null}
            </span>
            <span className="flex flex-1 items-center justify-between gap-4 sm:flex-none">
              <MemberRole team={team} member={member} own={member.user_id === userId} />
              <RemoveButton team={team} members={members} member={member} userId={userId} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}

function RemoveButton({
  team,
  members,
  member,
  userId,
}: {
  team: Team
  members: readonly Member[]
  member: Member
  userId: string
}) {
  const { mutate, isPending } = useRemoveMember(team.id)
  const block = removalBlock(team, members, member, userId)
  const own = member.user_id === userId && block === null
  const ask = () =>
    openModal({
      type: 'info',
      title: own ? copy.teams.leaveTitle : copy.teams.removeTitle,
      message: own ? copy.teams.leaveMessage(team.name) : copy.teams.removeMessage(member.email),
      actions: [
        { label: copy.app.cancel },
        {
          label: own ? copy.teams.leave : copy.teams.remove,
          variant: 'alarm',
          onClick: () => mutate({ member, own }),
        },
      ],
    })
  return (
    <Button
      kind="danger"
      size="small"
      busy={isPending}
      disabled={block !== null}
      title={block ? blocks[block] : undefined}
      aria-label={own ? copy.teams.leave : copy.teams.removeLabel(member.email)}
      onClick={ask}
    >
      {own ? copy.teams.leave : copy.teams.remove}
    </Button>
  )
}
