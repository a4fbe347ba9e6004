import { type FormEvent, useState } from 'react'
import type { Team } from '@/api/types'
import { copy } from '@/copy/en'
import { emailProblem } from '@/lib/email'
import { Button } from '@/ui/button'
import { ButtonLink } from '@/ui/button-link'
import { Field, TextInput } from '@/ui/field'
import { capacityOf, isFull } from './model'
import { useInvitations, useInvite } from './queries'
import { manageReason } from './reasons'

const problems = {
  required: copy.teams.emailRequired,
  too_long: copy.teams.emailTooLong,
  malformed: copy.teams.emailInvalid,
}

/** Invites by e-mail address; the address is checked on every keystroke. Visitors see it without a team. */
export function InviteForm({ team, memberCount }: { team: Team | null; memberCount: number }) {
  return (
    <section>
      <h2 className="mb-3 font-medium text-lead tracking-normal">{copy.teams.inviteTitle}</h2>
      <div className="card p-5">
        {!team || team.plan === 'pro' ? (
          <Form team={team} memberCount={memberCount} />
        ) : (
          <ButtonLink to="/create-team">{copy.teams.upgrade}</ButtonLink>
        )}
      </div>
    </section>
  )
}

function Form({ team, memberCount }: { team: Team | null; memberCount: number }) {
  const [email, setEmail] = useState('')
  const [touched, setTouched] = useState(false)
  const { data: invitations } = useInvitations()
  const { mutate, isPending } = useInvite(team?.id ?? '')
  const problem = emailProblem(email)
  const full = team && isFull(capacityOf(team), memberCount, invitations?.length ?? 0)
  const barred = manageReason(team)
  const reason = barred ?? (full ? copy.teams.inviteFull : undefined)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (problem || reason || isPending) return
    mutate(email.trim(), {
      onSuccess: () => {
        setEmail('')
        setTouched(false)
      },
    })
  }
  return (
    <form
      noValidate
      onSubmit={submit}
      className="grid grid-cols-1 items-start gap-3 sm:grid-cols-[minmax(0,1fr)_auto]"
    >
      <Field label={copy.teams.inviteEmail} error={touched && problem ? problems[problem] : null}>
        {(ids) => (
          <TextInput
            {...ids}
            type="email"
            autoComplete="off"
            disabled={barred !== undefined}
            value={email}
            onChange={(event) => {
              setEmail(event.target.value)
              setTouched(true)
            }}
          />
        )}
      </Field>
      <Button
        type="submit"
        kind="primary"
        busy={isPending}
        disabled={problem !== null || reason !== undefined}
        title={reason}
        className="sm:mt-[26px]"
      >
        {copy.teams.invite}
      </Button>
    </form>
  )
}
