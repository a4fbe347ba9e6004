import { Minus, Plus } from 'lucide-react'
import { type FormEvent, type ReactNode, useState } from 'react'
import { ApiError, detailOf } from '@/api/error'
import type { Subscription } from '@/api/types'
import { copy } from '@/copy/en'
import { formatWholeUsd } from '@/lib/money'
import { formatDay } from '@/lib/month'
import { Button } from '@/ui/button'
import { Dialog } from '@/ui/dialog'
import { Field, TextInput } from '@/ui/field'
import { seatsProblem, stepSeats } from './plan-model'
import { useSetSeats } from './plan-queries'

const texts = copy.plan
const paymentRequired = 402

interface SeatsDialogProps {
  teamId: string
  plan: Subscription
  open: boolean
  onClose: () => void
}

/** Asks how many seats there are to be, and says what they cost before they are paid. */
export function SeatsDialog({ teamId, plan, open, onClose }: SeatsDialogProps) {
  const change = useSetSeats(teamId)
  const close = () => {
    change.reset()
    onClose()
  }
  return (
    <Dialog
      open={open}
      onClose={close}
      title={texts.seatsTitle}
      closeLabel={copy.app.close}
      busy={change.isPending}
    >
      <Form plan={plan} change={change} onClose={close} />
    </Dialog>
  )
}

interface FormProps {
  plan: Subscription
  change: ReturnType<typeof useSetSeats>
  onClose: () => void
}

function Form({ plan, change, onClose }: FormProps) {
  const [text, setText] = useState(String(plan.member_count))
  const { mutate, isPending, error, reset } = change
  const problem = seatsProblem(text, plan)
  const seats = problem === null ? Number(text) : plan.member_count
  const type = (next: string) => {
    setText(next)
    reset()
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (problem === null && !isPending) mutate(seats, { onSuccess: onClose })
  }
  const step = (by: 1 | -1) => stepSeats(text, by, plan)
  return (
    <form noValidate onSubmit={submit} className="grid grid-cols-1 gap-4">
      <Field
        label={texts.seatsField}
        hint={texts.seatsHint(plan.seats_taken)}
        error={problem === null || problem === 'same' ? null : problemText(problem, plan.seats_taken)}
      >
        {(ids) => (
          <div className="flex gap-2">
            <Step label={texts.fewer} to={isPending ? null : step(-1)} onStep={type}>
              <Minus size={16} aria-hidden="true" className="shrink-0" />
            </Step>
            <TextInput
              {...ids}
              inputMode="numeric"
              autoComplete="off"
              value={text}
              readOnly={isPending}
              onChange={(event) => type(event.target.value)}
              className="price max-w-24 text-center"
            />
            <Step label={texts.more} to={isPending ? null : step(1)} onStep={type}>
              <Plus size={16} aria-hidden="true" className="shrink-0" />
            </Step>
          </div>
        )}
      </Field>
      <Cost plan={plan} seats={seats} />
      <p aria-live="polite" className="text-control">
        {problem === null || problem === 'same' ? effect(plan, seats) : null}
      </p>
      {error ? (
        <p role="alert" className="text-control text-danger">
          {detailOf(error, texts.seatsFailed)}{' '}
          {error instanceof ApiError && error.status === paymentRequired ? texts.checkCard : null}
        </p>
      ) : null}
      <Button type="submit" kind="primary" size="large" busy={isPending} disabled={problem !== null}>
        {isPending ? texts.seatsBusy : texts.seatsSubmit(seats, formatWholeUsd(seats * plan.seat_price))}
      </Button>
    </form>
  )
}

interface StepProps {
  label: string
  to: string | null
  onStep: (to: string) => void
  children: ReactNode
}

function Step({ label, to, onStep, children }: StepProps) {
  return (
    <Button
      aria-label={label}
      disabled={to === null}
      onClick={() => (to === null ? undefined : onStep(to))}
      className="w-9 pointer-coarse:w-11"
    >
      {children}
    </Button>
  )
}

/** What is paid each month now, and what will be. */
function Cost({ plan, seats }: { plan: Subscription; seats: number }) {
  const lines = [
    [texts.now, plan.member_count],
    [texts.after, seats],
  ] as const
  return (
    <dl className="price grid grid-cols-1 gap-1.5 rounded-control border border-line-2 bg-ink-1 p-4 text-control">
      {lines.map(([label, count]) => (
        <div
          key={label}
          className="flex items-baseline justify-between gap-4 last:font-semibold last:text-hi"
        >
          <dt className="w-16">{label}</dt>
          <dd className="flex-1 font-normal text-low text-meta">
            {texts.seatsOf(count, formatWholeUsd(plan.seat_price))}
          </dd>
          <dd>{texts.perMonth(formatWholeUsd(count * plan.seat_price))}</dd>
        </div>
      ))}
    </dl>
  )
}

function effect(plan: Subscription, seats: number): string {
  if (seats > plan.member_count) return texts.seatsMore
  if (seats === plan.member_count) return texts.seatsSame
  return texts.seatsFewer(plan.period_end_at ? formatDay(plan.period_end_at) : null)
}

function problemText(problem: 'number' | 'taken' | 'most', taken: number): string {
  if (problem === 'taken') return texts.seatsTaken(Math.max(1, taken))
  return problem === 'most' ? texts.seatsMost : texts.seatsNumber
}
