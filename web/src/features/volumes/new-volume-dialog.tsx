import { type FormEvent, useState } from 'react'
import { copy } from '@/copy/en'
import { Button } from '@/ui/button'
import { Dialog } from '@/ui/dialog'
import { Field, TextInput } from '@/ui/field'
import { nameOrUntitled } from './model'
import { useCreateVolume } from './queries'

const maxNameLength = 80

/** Asks for a name and makes a volume. */
export function NewVolumeDialog({
  teamId,
  open,
  onClose,
}: {
  teamId: string
  open: boolean
  onClose: () => void
}) {
  const [name, setName] = useState('')
  const { mutate } = useCreateVolume(teamId)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    // After a refusal the dialog opens again with what was typed.
    mutate(nameOrUntitled(name, copy.app.untitled), { onSuccess: () => setName('') })
    onClose()
  }
  return (
    <Dialog open={open} onClose={onClose} title={copy.storage.create} closeLabel={copy.app.close}>
      <form noValidate onSubmit={submit} className="grid grid-cols-1 gap-5">
        <Field label={copy.storage.name} hint={copy.storage.nameHint}>
          {(ids) => (
            <TextInput
              {...ids}
              value={name}
              maxLength={maxNameLength}
              placeholder={copy.app.untitled}
              autoComplete="off"
              onChange={(event) => setName(event.target.value)}
            />
          )}
        </Field>
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>{copy.app.cancel}</Button>
          <Button type="submit" kind="primary">
            {copy.storage.submit}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
