import { type FormEvent, useState } from 'react'
import { copy } from '@/copy/en'
import { Button } from '@/ui/button'
import { Checkbox } from '@/ui/checkbox'
import { Dialog } from '@/ui/dialog'
import { Field, TextInput } from '@/ui/field'
import { newKey } from './key-model'
import { nameOrUntitled } from './model'
import { NewKey } from './new-key'
import { useCreateVolume } from './queries'

const maxNameLength = 80

/** Asks for a name, and whether only the team is to hold the key, and makes a volume. */
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
  const own = useOwnKey()
  const { mutate } = useCreateVolume(teamId)
  const title = nameOrUntitled(name, copy.app.untitled)
  const unstored = own.key !== null && !own.stored
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (unstored) return
    // After a refusal the dialog opens again with what was typed, and with the key that was stored.
    mutate(
      { name: title, key: own.key },
      {
        onSuccess: () => {
          setName('')
          own.forget()
        },
      },
    )
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
        <Checkbox
          label={copy.volumeKey.own}
          hint={copy.volumeKey.ownHint}
          checked={own.key !== null}
          onChange={own.want}
        />
        {own.key === null ? null : (
          <NewKey name={title} volumeKey={own.key} stored={own.stored} onStored={own.setStored} />
        )}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>{copy.app.cancel}</Button>
          <Button
            type="submit"
            kind="primary"
            disabled={unstored}
            title={unstored ? copy.volumeKey.storeFirst : undefined}
          >
            {copy.storage.submit}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

/** The key for the next volume, if one is wanted. Until that is made it stays the same: it may have been stored. */
function useOwnKey() {
  const [wanted, setWanted] = useState(false)
  const [drawn, setDrawn] = useState<string | null>(null)
  const [stored, setStored] = useState(false)
  return {
    key: wanted ? drawn : null,
    stored,
    setStored,
    want: (on: boolean) => {
      if (on && drawn === null) setDrawn(newKey())
      setWanted(on)
    },
    forget: () => {
      setWanted(false)
      setDrawn(null)
      setStored(false)
    },
  }
}
