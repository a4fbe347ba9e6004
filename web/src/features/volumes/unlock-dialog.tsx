import { useLocation } from '@tanstack/react-router'
import { type FormEvent, useEffect, useRef, useState } from 'react'
import { detailOf } from '@/api/error'
import { copy } from '@/copy/en'
import { Button } from '@/ui/button'
import { Dialog } from '@/ui/dialog'
import { Field, TextInput } from '@/ui/field'
import { isKey } from './key-model'
import { useUnlock } from './key-queries'
import { type KeyWanted, keyWanted } from './queries'

const texts = copy.volumeKey
const close = () => keyWanted.set(null)

/** Asks for the key of a locked volume, and goes on with what needs it. */
export default function UnlockDialog({ volume, act, meanwhile }: KeyWanted) {
  const unlock = useUnlock(volume)
  useCloseElsewhere()
  return (
    <Dialog
      open
      onClose={close}
      title={texts.unlockTitle}
      description={meanwhile ? texts.unlockAgain(volume.name) : texts.unlockText(volume.name)}
      closeLabel={copy.app.close}
      busy={unlock.isPending}
    >
      <Form
        unlock={unlock}
        onOpen={() => {
          close()
          act()
        }}
      />
    </Dialog>
  )
}

/** Who goes to another page does not want any more what waits for the key. */
function useCloseElsewhere(): void {
  const { pathname } = useLocation()
  const [asked] = useState(pathname)
  useEffect(() => {
    if (pathname !== asked) close()
  }, [pathname, asked])
}

function Form({ unlock, onOpen }: { unlock: ReturnType<typeof useUnlock>; onOpen: () => void }) {
  const [text, setText] = useState('')
  const [asked, setAsked] = useState(false)
  const field = useRef<HTMLInputElement>(null)
  const { mutate, isPending, error, reset } = unlock
  const key = text.trim()
  const malformed = asked && !isKey(key) ? texts.malformed : null
  const submit = (event: FormEvent) => {
    event.preventDefault()
    setAsked(true)
    if (!isKey(key)) field.current?.select()
    else if (!isPending) mutate(key, { onSuccess: onOpen, onError: () => field.current?.select() })
  }
  return (
    <form noValidate onSubmit={submit} className="grid grid-cols-1 gap-5">
      <Field
        label={texts.field}
        hint={texts.fieldHint}
        error={malformed ?? (error ? detailOf(error, texts.unlockFailed) : null)}
      >
        {(ids) => (
          <TextInput
            {...ids}
            ref={field}
            type="password"
            required
            value={text}
            autoComplete="off"
            spellCheck={false}
            readOnly={isPending}
            className="num"
            onChange={(event) => {
              setText(event.target.value)
              setAsked(false)
              reset()
            }}
          />
        )}
      </Field>
      <div className="flex justify-end gap-2">
        <Button disabled={isPending} onClick={close}>
          {copy.app.cancel}
        </Button>
        <Button type="submit" kind="primary" busy={isPending}>
          {texts.unlock}
        </Button>
      </div>
    </form>
  )
}
