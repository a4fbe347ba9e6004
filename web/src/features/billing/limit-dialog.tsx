import { type FormEvent, useState } from 'react'
import { detailOf } from '@/api/error'
import { copy } from '@/copy/en'
import { formatUsd } from '@/lib/money'
import { Button } from '@/ui/button'
import { Dialog } from '@/ui/dialog'
import { Field, TextInput } from '@/ui/field'
import { parseAmount } from './model'
import { limitProblem } from './plan-model'
import { useSetLimit } from './plan-queries'

const texts = copy.plan

interface LimitDialogProps {
  teamId: string
  open: boolean
  onClose: () => void
  /** USD of this month. */
  spent: number
  /** USD per month that hold now; 0: none. */
  limit: number
  /** USD per month that the plan allows; 0: any. */
  planLimit: number
}

/** Asks for the most that the team may spend in a month. */
export function LimitDialog({ teamId, open, onClose, ...figures }: LimitDialogProps) {
  const change = useSetLimit(teamId)
  const close = () => {
    change.reset()
    onClose()
  }
  return (
    <Dialog
      open={open}
      onClose={close}
      title={texts.limitTitle}
      closeLabel={copy.app.close}
      busy={change.isPending}
    >
      <Form change={change} onClose={close} {...figures} />
    </Dialog>
  )
}

type FormProps = Omit<LimitDialogProps, 'open' | 'teamId'> & { change: ReturnType<typeof useSetLimit> }

function Form({ change, onClose, spent, limit, planLimit }: FormProps) {
  const [text, setText] = useState(limit > 0 ? String(limit) : '')
  const [asked, setAsked] = useState(false)
  const { mutate, isPending, error, variables, reset } = change
  const amount = parseAmount(text)
  const problem = limitProblem(amount, planLimit)
  const removing = isPending && variables === planLimit && amount !== planLimit
  const submit = (event: FormEvent) => {
    event.preventDefault()
    setAsked(true)
    if (problem === null && amount !== null && !isPending) mutate(amount, { onSuccess: onClose })
  }
  const shown = asked && problem === 'invalid' ? texts.limitInvalid : null
  const below = problem === null && amount !== null && spent > 0 && amount <= spent
  return (
    <form noValidate onSubmit={submit} className="grid grid-cols-1 gap-4">
      <Field
        label={texts.limitField}
        hint={planLimit > 0 ? texts.limitHint(formatUsd(planLimit)) : undefined}
        error={problem === 'tooHigh' ? texts.limitTooHigh(formatUsd(planLimit)) : shown}
      >
        {(ids) => (
          <TextInput
            {...ids}
            type="number"
            inputMode="decimal"
            min="0.01"
            step="0.01"
            value={text}
            readOnly={isPending}
            onChange={(event) => {
              setText(event.target.value)
              reset()
            }}
            className="price"
          />
        )}
      </Field>
      <div className="text-control">
        <p>{texts.limitEffect}</p>
        <p role="status" className="text-warn not-empty:mt-2">
          {below ? texts.limitBelow(formatUsd(spent)) : null}
        </p>
      </div>
      {error ? (
        <p role="alert" className="text-control text-danger">
          {detailOf(error, texts.limitFailed)}
        </p>
      ) : null}
      <div className="flex flex-wrap justify-end gap-2">
        {limit !== planLimit && planLimit > 0 ? (
          <Button
            kind="ghost"
            busy={removing}
            disabled={isPending}
            onClick={() => mutate(planLimit, { onSuccess: onClose })}
            className="mr-auto -ml-3"
          >
            {texts.limitRemove}
          </Button>
        ) : null}
        <Button disabled={isPending} onClick={onClose}>
          {copy.app.cancel}
        </Button>
        <Button type="submit" kind="primary" busy={isPending && !removing} disabled={amount === limit}>
          {texts.limitSubmit}
        </Button>
      </div>
    </form>
  )
}
