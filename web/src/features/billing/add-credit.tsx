import { type FormEvent, lazy, Suspense, useState } from 'react'
import { copy } from '@/copy/en'
import { useSession, useTeam } from '@/features/session/queries'
import { Button } from '@/ui/button'
import { Field, TextInput } from '@/ui/field'
import { usePageRestored } from '@/ui/page-restored'
import { parseAmount } from './model'
import { useCreditCheckout } from './queries'

const SaveCard = lazy(() => import('./save-card'))

const quickAmounts = [5, 25, 100, 1000] as const

/** Fills the wallet through the payment page. */
export function AddCredit() {
  const signedIn = useSession().status === 'in'
  const { team } = useTeam()
  const [text, setText] = useState('')
  const [savingFor, setSavingFor] = useState<string | null>(null)
  const { mutate, isPending, isSuccess, reset } = useCreditCheckout()
  usePageRestored(reset)
  // After a success the browser is on its way to the payment page.
  const busy = isPending || isSuccess
  const title = signedIn ? undefined : copy.billing.signInToPay
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const amount = parseAmount(text)
    if (amount === null || !team) return
    mutate({ teamId: team.id, amount, saveCard: savingFor === team.id })
  }
  return (
    <section className="card p-5">
      <h2 className="font-medium text-lead tracking-normal">
        {signedIn ? copy.billing.addCredit : copy.billing.addCreditVisitor}
      </h2>
      <fieldset className="mt-4 grid grid-cols-2 gap-2 sm:grid-cols-4" disabled={!signedIn}>
        <legend className="sr-only">{copy.billing.quickAmounts}</legend>
        {quickAmounts.map((amount) => (
          <Button
            key={amount}
            size="large"
            className="price"
            disabled={!signedIn}
            title={title}
            aria-pressed={text === String(amount)}
            onClick={() => setText(String(amount))}
          >
            ${amount}
          </Button>
        ))}
      </fieldset>
      <form
        noValidate
        onSubmit={submit}
        className="mt-4 grid grid-cols-1 items-end gap-3 sm:grid-cols-[1fr_auto]"
      >
        <Field label={copy.billing.customAmount}>
          {(ids) => (
            <TextInput
              {...ids}
              type="number"
              inputMode="decimal"
              min="0.01"
              step="0.01"
              placeholder={copy.billing.customPlaceholder}
              disabled={!signedIn}
              title={title}
              value={text}
              onChange={(event) => setText(event.target.value)}
              className="price h-11"
            />
          )}
        </Field>
        <Button
          type="submit"
          kind="primary"
          size="large"
          busy={busy}
          disabled={!signedIn || text.trim() === ''}
          title={title}
          className="sm:min-w-36"
        >
          {busy ? copy.billing.processing : copy.billing.pay}
        </Button>
      </form>
      {team?.role === 'admin' && text !== '' ? (
        <Suspense>
          <SaveCard
            teamId={team.id}
            checked={savingFor === team.id}
            onChange={(on) => setSavingFor(on ? team.id : null)}
          />
        </Suspense>
      ) : null}
    </section>
  )
}
