import { type FormEvent, useState } from 'react'
import type { Team } from '@/api/types'
import { copy } from '@/copy/en'
import { Button } from '@/ui/button'
import { Dialog } from '@/ui/dialog'
import { Field, TextInput } from '@/ui/field'
import { useDeleteTeam } from './queries'
import { manageReason } from './reasons'

/** The end of a team, behind the typing of its name. */
export function DangerZone({ team }: { team: Team | null }) {
  const [open, setOpen] = useState(false)
  const [typed, setTyped] = useState('')
  const { mutate, isPending, isSuccess } = useDeleteTeam()
  const reason = team?.is_personal ? copy.teams.deletePersonal : manageReason(team)
  const name = team?.name ?? ''
  const close = () => {
    setOpen(false)
    setTyped('')
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    // On success the page goes home: the dialog stays until then.
    if (team && typed.trim() === name && !isPending) mutate(team.id, { onError: close })
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
      <Dialog open={open} onClose={close} title={copy.teams.deleteTitle} closeLabel={copy.app.close}>
        <form noValidate onSubmit={submit} className="grid grid-cols-1 gap-4">
          <p>{copy.teams.deleteMessage(name)}</p>
          <Field label={copy.teams.deleteConfirm}>
            {(ids) => (
              <TextInput
                {...ids}
                value={typed}
                autoComplete="off"
                spellCheck={false}
                placeholder={name}
                onChange={(event) => setTyped(event.target.value)}
              />
            )}
          </Field>
          <div className="flex justify-end gap-2">
            <Button onClick={close}>{copy.app.cancel}</Button>
            <Button type="submit" kind="alarm" busy={isPending || isSuccess} disabled={typed.trim() !== name}>
              {copy.app.delete}
            </Button>
          </div>
        </form>
      </Dialog>
    </section>
  )
}
