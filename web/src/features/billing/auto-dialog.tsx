import { type FormEvent, useState } from 'react'
import { detailOf } from '@/api/error'
import type { AutoTopUp, Card } from '@/api/types'
import { copy } from '@/copy/en'
import { formatUsd } from '@/lib/money'
import { Button } from '@/ui/button'
import { Dialog } from '@/ui/dialog'
import { Field, Switch, TextInput } from '@/ui/field'
import { brandOf, type TypedTopUp, topUpProblems } from './auto-model'
import { useSetAutoTopUp } from './auto-queries'

const texts = copy.topUp

interface AutoDialogProps {
  teamId: string
  topUp: AutoTopUp
  card: Card
  open: boolean
  onClose: () => void
}

/** Asks what the saved card may pay by itself. */
export function AutoDialog({ teamId, topUp, card, open, onClose }: AutoDialogProps) {
  const change = useSetAutoTopUp(teamId)
  const close = () => {
    change.reset()
    onClose()
  }
  return (
    <Dialog
      open={open}
      onClose={close}
      title={texts.title}
      closeLabel={copy.app.close}
      busy={change.isPending}
    >
      <Form topUp={topUp} card={card} change={change} onClose={close} />
    </Dialog>
  )
}

interface FormProps {
  topUp: AutoTopUp
  card: Card
  change: ReturnType<typeof useSetAutoTopUp>
  onClose: () => void
}

function Form({ topUp, card, change, onClose }: FormProps) {
  // Who opens this while it is off wants it on.
  const [enabled, setEnabled] = useState(true)
  const [typed, setTyped] = useState<TypedTopUp>({
    threshold: String(topUp.threshold),
    amount: String(topUp.amount),
    cap: String(topUp.monthly_cap),
  })
  const [asked, setAsked] = useState(false)
  const { mutate, isPending, error, reset } = change
  const least = formatUsd(topUp.min_amount)
  const wrong = enabled ? topUpProblems(typed, topUp.min_amount) : []
  const submit = (event: FormEvent) => {
    event.preventDefault()
    setAsked(true)
    if (wrong.length > 0 || isPending) return
    const { threshold, amount, monthly_cap } = topUp
    // What is turned off keeps what was agreed on.
    const wanted = enabled
      ? { threshold: Number(typed.threshold), amount: Number(typed.amount), monthly_cap: Number(typed.cap) }
      : { threshold, amount, monthly_cap }
    mutate({ enabled, ...wanted }, { onSuccess: onClose })
  }
  const field = (name: keyof TypedTopUp, problem: string, hint?: string) => (
    <Field label={texts[name]} hint={hint} error={asked && wrong.includes(name) ? problem : null}>
      {(ids) => (
        <TextInput
          {...ids}
          type="number"
          inputMode="decimal"
          min="0"
          step="0.01"
          value={typed[name]}
          readOnly={isPending}
          onChange={(event) => {
            setTyped({ ...typed, [name]: event.target.value })
            reset()
          }}
          className="price"
        />
      )}
    </Field>
  )
  return (
    <form noValidate onSubmit={submit} className="grid grid-cols-1 gap-4">
      <div>
        <Switch label={texts.enabled} checked={enabled} onChange={setEnabled} />
      </div>
      {enabled ? (
        <>
          {field('threshold', texts.problems.threshold)}
          {field('amount', texts.problems.amount(least), texts.amountHint(least))}
          {field('cap', texts.problems.cap)}
          <p className="text-low text-meta">{texts.consent(texts.cardName(brandOf(card), card.last4))}</p>
        </>
      ) : null}
      {error ? (
        <p role="alert" className="text-control text-danger">
          {detailOf(error, texts.submitFailed)}
        </p>
      ) : null}
      <div className="flex justify-end gap-2">
        <Button disabled={isPending} onClick={onClose}>
          {copy.app.cancel}
        </Button>
        <Button type="submit" kind="primary" busy={isPending}>
          {texts.submit}
        </Button>
      </div>
    </form>
  )
}
