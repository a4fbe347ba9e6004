import type { Team } from '@/api/types'
import { copy } from '@/copy/en'
import { Button } from '@/ui/button'
import { useCancelInvitation, useInvitations } from './queries'
import { manageReason } from './reasons'

/** Who was invited and has not joined yet. */
export function Invitations({ team }: { team: Team }) {
  const { data } = useInvitations()
  const { mutate } = useCancelInvitation(team.id)
  const reason = manageReason(team)
  if (!data) return null
  return (
    <section>
      <h2 className="mb-3 font-medium text-lead tracking-normal">{copy.teams.invitations}</h2>
      {data.length === 0 ? (
        <p className="text-control text-low">{copy.teams.noInvitations}</p>
      ) : (
        <ul className="card divide-y divide-line-1">
          {data.map((invitation) => (
            <li key={invitation.id} className="flex items-center gap-4 px-5 py-3">
              <span className="wrap-anywhere min-w-0 flex-1">{invitation.email}</span>
              <Button
                size="small"
                disabled={reason !== undefined}
                title={reason}
                aria-label={copy.teams.cancelLabel(invitation.email)}
                onClick={() => mutate(invitation)}
              >
                {copy.teams.cancelInvitation}
              </Button>
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}
