import { type FormEvent, useRef, useState } from 'react'
import { detailOf } from '@/api/error'
import { copy } from '@/copy/en'
import { formatWholeUsd } from '@/lib/money'
import { Button } from '@/ui/button'
import { Dialog } from '@/ui/dialog'
import { Field, TextArea, TextInput } from '@/ui/field'
import { usePageRestored } from '@/ui/page-restored'
import { countProblem, monthlyCost } from './model'
import { useTeamCheckout } from './queries'

/** Asks what the new team is called and how large it is, and goes on to the payment. */
export function TeamDetailsDialog({ open, onClose }: { open: boolean; onClose: () => void }) {
  const [name, setName] = useState('')
  const [count, setCount] = useState('1')
  const [description, setDescription] = useState('')
  const [nameMissing, setNameMissing] = useState(false)
  const nameField = useRef<HTMLInputElement>(null)
  const { mutate, isPending, isSuccess, error, reset } = useTeamCheckout()
  usePageRestored(reset)
  const problem = countProblem(count)
  const cost = monthlyCost(problem ? 1 : Number(count))
  const busy = isPending || isSuccess

  const submit = (event: FormEvent) => {
    event.preventDefault()
    const trimmed = name.trim()
    setNameMissing(trimmed === '')
    if (trimmed === '') nameField.current?.focus()
    if (trimmed === '' || problem || busy) return
    mutate({ name: trimmed, description: description.trim(), member_count: Number(count) })
  }

  return (
    <Dialog
      open={open}
      onClose={onClose}
      title={copy.plans.details}
      description={copy.plans.newTeam}
      closeLabel={copy.app.close}
      width="wide"
    >
      <form noValidate onSubmit={submit} className="grid grid-cols-1 gap-4">
        <Field label={copy.plans.teamName} error={nameMissing ? copy.plans.teamNameRequired : null}>
          {(ids) => (
            <TextInput
              {...ids}
              ref={nameField}
              required
              value={name}
              autoComplete="organization"
              onChange={(event) => {
                setName(event.target.value)
                setNameMissing(false)
              }}
            />
          )}
        </Field>
        <Field label={copy.plans.members} error={problem ? copy.plans[problem] : null}>
          {(ids) => (
            <TextInput
              {...ids}
              inputMode="numeric"
              value={count}
              onChange={(event) => setCount(event.target.value)}
            />
          )}
        </Field>
        <Field label={copy.plans.description}>
          {(ids) => (
            <TextArea
              {...ids}
              rows={2}
              value={description}
              onChange={(event) => setDescription(event.target.value)}
            />
          )}
        </Field>
        <Breakdown cost={cost} />
        {error ? (
          <p role="alert" className="text-danger">
            {detailOf(error, copy.plans.failed)}
          </p>
        ) : null}
        <Button type="submit" kind="primary" size="large" busy={busy} disabled={problem !== null}>
          {busy ? copy.plans.submitting : copy.plans.submit(formatWholeUsd(cost.total))}
        </Button>
        <p className="text-center text-low text-meta">{copy.plans.billed}</p>
      </form>
    </Dialog>
  )
}

function Breakdown({ cost }: { cost: ReturnType<typeof monthlyCost> }) {
  return (
    <section className="rounded-control border border-line-2 bg-ink-1 p-4">
      <h3 className="font-medium text-control tracking-normal">{copy.plans.breakdown}</h3>
      <dl className="price mt-2 grid grid-cols-1 gap-1.5 text-control">
        <Line label={copy.plans.base} amount={cost.base} />
        <Line label={copy.plans.extra(cost.extraMembers)} amount={cost.extra} />
        <div className="mt-1 flex justify-between border-line-1 border-t pt-2 font-semibold text-hi">
          <dt>{copy.plans.monthlyTotal}</dt>
          <dd>{formatWholeUsd(cost.total)}</dd>
        </div>
      </dl>
    </section>
  )
}

function Line({ label, amount }: { label: string; amount: number }) {
  return (
    <div className="flex justify-between">
      <dt>{label}</dt>
      <dd className="text-hi">{formatWholeUsd(amount)}</dd>
    </div>
  )
}
