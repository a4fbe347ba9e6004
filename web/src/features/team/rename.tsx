import { Pencil } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { detailOf } from '@/api/error'
import type { Team } from '@/api/types'
import { copy } from '@/copy/en'
import { Button, IconButton } from '@/ui/button'
import { Dialog } from '@/ui/dialog'
import { Field, TextInput } from '@/ui/field'
import { useRenameTeam } from './queries'

const longestName = 80

/** Gives the team another name. */
export function Rename({ team }: { team: Team }) {
  const [open, setOpen] = useState(false)
  const change = useRenameTeam(team.id)
  const close = () => {
    change.reset()
    setOpen(false)
  }
  return (
    <>
      <IconButton
        label={copy.teams.rename}
        title={copy.teams.rename}
        className="-mx-2"
        onClick={() => setOpen(true)}
      >
        <Pencil size={14} aria-hidden="true" />
      </IconButton>
      <Dialog
        open={open}
        onClose={close}
        title={copy.teams.renameTitle}
        closeLabel={copy.app.close}
        busy={change.isPending}
      >
        <Form team={team} change={change} onClose={close} />
      </Dialog>
    </>
  )
}

interface FormProps {
  team: Team
  change: ReturnType<typeof useRenameTeam>
  onClose: () => void
}

function Form({ team, change, onClose }: FormProps) {
  const [name, setName] = useState(team.name)
  const [asked, setAsked] = useState(false)
  const { mutate, isPending, error, reset } = change
  const trimmed = name.trim()
  const submit = (event: FormEvent) => {
    event.preventDefault()
    setAsked(true)
    if (trimmed === team.name) onClose()
    else if (trimmed !== '' && !isPending) mutate(trimmed, { onSuccess: onClose })
  }
  const missing = asked && trimmed === '' ? copy.teams.renameRequired : null
  return (
    <form noValidate onSubmit={submit} className="grid grid-cols-1 gap-4">
      <Field
        label={copy.teams.renameField}
        hint={copy.teams.renameHint}
        error={missing ?? (error ? detailOf(error, copy.teams.renameFailed) : null)}
      >
        {(ids) => (
          <TextInput
            {...ids}
            value={name}
            maxLength={longestName}
            autoComplete="off"
            readOnly={isPending}
            onFocus={(event) => event.target.select()}
            onChange={(event) => {
              setName(event.target.value)
              reset()
            }}
          />
        )}
      </Field>
      <div className="flex justify-end gap-2">
        <Button disabled={isPending} onClick={onClose}>
          {copy.app.cancel}
        </Button>
        <Button type="submit" kind="primary" busy={isPending}>
          {copy.teams.renameSubmit}
        </Button>
      </div>
    </form>
  )
}
