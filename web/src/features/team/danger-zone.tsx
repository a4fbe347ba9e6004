import { type FormEvent, useState } from 'react'
import type { Team } from '@/api/types'
import { copy } from '@/copy/en'
import { Button } from '@/ui/button'
import { Dialog } from '@/ui/dialog'
import { Field, TextInput } from '@/ui/field'
import { useDeleteTeam } from './queries'

/** The end of a team, behind the typing of its name. */
export function DangerZone({ team }: { team: Team }) {
  const [open, setOpen] = useState(false)
  const [typed, setTyped] = useState('')
  const { mutate, isPending } = useDeleteTeam()
  const reason = team.is_personal
    ? copy.teams.deletePersonal
    : team.role === 'admin'
      ? undefined
      : copy.app.adminsOnly
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (typed === team.name) mutate(team.id, { onSettled: () => setOpen(false) })
  }
  return (
    <section className="rounded-card border border-danger/35 p-5">
      <h2 className="font-medium text-danger text-lead tracking-normal">{copy.teams.danger}</h2>
      <div className="mt-2 flex flex-wrap items-center gap-4">
        <p className="flex-1 basis-72 text-control">{copy.teams.dangerText}</p>
        <Button kind="danger" disabled={reason !== undefined} title={reason} onClick={() => setOpen(true)}>
          {copy.teams.delete}
        </Button>
      </div>
      <Dialog
        open={open}
        onClose={() => setOpen(false)}
        title={copy.teams.deleteTitle}
        closeLabel={copy.app.close}
      >
        <form noValidate onSubmit={submit} className="grid grid-cols-1 gap-4">
          <p>{copy.teams.deleteMessage(team.name)}</p>
          <Field label={copy.teams.deleteConfirm}>
            {(ids) => (
              <TextInput
                {...ids}
                value={typed}
                autoComplete="off"
                onChange={(event) => setTyped(event.target.value)}
              />
            )}
          </Field>
          <div className="flex justify-end gap-2">
            <Button onClick={() => setOpen(false)}>{copy.app.cancel}</Button>
            <Button type="submit" kind="alarm" busy={isPending} disabled={typed !== team.name}>
              {copy.app.delete}
            </Button>
          </div>
        </form>
      </Dialog>
    </section>
  )
}
