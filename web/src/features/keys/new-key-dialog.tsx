import { type FormEvent, useState } from 'react'
import { copy } from '@/copy/en'
import { Button } from '@/ui/button'
import { Dialog } from '@/ui/dialog'
import { Field, TextArea, TextInput } from '@/ui/field'
import { keyProblem } from './model'
import { useCreateKey } from './queries'

const problems = { required: copy.keys.publicKeyRequired, private: copy.keys.privateKey }
const maxNameLength = 80

/** Asks for a public key and adds it to the team. */
export function NewKeyDialog({
  teamId,
  open,
  onClose,
}: {
  teamId: string
  open: boolean
  onClose: () => void
}) {
  const [name, setName] = useState('')
  const [publicKey, setPublicKey] = useState('')
  const [problem, setProblem] = useState<keyof typeof problems | null>(null)
  const { mutate } = useCreateKey(teamId)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const found = keyProblem(publicKey)
    setProblem(found)
    if (found) return
    mutate(
      { name: name.trim() || copy.app.untitled, publicKey: publicKey.trim() },
      {
        // After a refusal the dialog opens again with what was typed.
        onSuccess: () => {
          setName('')
          setPublicKey('')
        },
      },
    )
    onClose()
  }
  return (
    <Dialog open={open} onClose={onClose} title={copy.keys.create} closeLabel={copy.app.close} width="wide">
      <form noValidate onSubmit={submit} className="grid grid-cols-1 gap-5">
        <Field label={copy.keys.name}>
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
        <Field
          label={copy.keys.publicKey}
          hint={copy.keys.publicKeyHint}
          error={problem && problems[problem]}
        >
          {(ids) => (
            <TextArea
              {...ids}
              required
              rows={4}
              spellCheck={false}
              value={publicKey}
              placeholder="ssh-ed25519 AAAA…"
              className="num"
              onChange={(event) => {
                setPublicKey(event.target.value)
                setProblem(null)
              }}
            />
          )}
        </Field>
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>{copy.app.cancel}</Button>
          <Button type="submit" kind="primary">
            {copy.keys.submit}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
