import { useSearch } from '@tanstack/react-router'
import { MailCheck } from 'lucide-react'
import { type FormEvent, useEffect, useState } from 'react'
import { type Config, loadConfig } from '@/api/config'
import { requestLink } from '@/api/session'
import { copy } from '@/copy/en'
import { useSession } from '@/features/session/queries'
import { safeRedirect } from '@/lib/redirect'
import { Button } from '@/ui/button'
import { Field, TextInput } from '@/ui/field'
import { Logo } from '@/ui/logo'
import { Notice } from '@/ui/notice'
import { usePageTitle } from '@/ui/page'
import { saveRedirect } from './queries'

/** Passwordless sign-in by a mailed link. */
export function AuthPage() {
  usePageTitle(copy.auth.title)
  const session = useSession()
  const search = useSearch({ from: '/shell/auth' })
  const [email, setEmail] = useState('')
  const [state, setState] = useState<'idle' | 'sending' | 'sent'>('idle')
  const [problem, setProblem] = useState<string | null>(session.status === 'none' ? session.problem : null)

  const submit = async (event: FormEvent) => {
    event.preventDefault()
    const address = email.trim()
    if (address === '') {
      setProblem(copy.auth.required)
      return
    }
    setProblem(null)
    setState('sending')
    const target = safeRedirect(search.redirect, '')
    if (target) saveRedirect(target)
    const refusal = await requestLink(address).catch((error: unknown) => {
      console.error('auth: link not requested', error)
      return copy.auth.failed
    })
    setProblem(refusal)
    setState(refusal === null ? 'sent' : 'idle')
  }

  return (
    <div className="mx-auto grid max-w-[400px] grid-cols-1 gap-6 pt-4 sm:pt-[12vh]">
      <header>
        <Logo className="size-9 text-hi" />
        <h1 tabIndex={-1} className="mt-5 font-semibold text-title">
          {copy.auth.title}
        </h1>
        <p className="mt-1">{copy.auth.lead}</p>
      </header>
      <form noValidate onSubmit={submit} className="card grid grid-cols-1 gap-4 p-5">
        <Field label={copy.auth.email}>
          {(ids) => (
            <TextInput
              {...ids}
              type="email"
              name="email"
              autoComplete="email"
              inputMode="email"
              value={email}
              onChange={(event) => setEmail(event.target.value)}
              className="h-11"
            />
          )}
        </Field>
        <Button type="submit" kind="primary" size="large" busy={state === 'sending'}>
          {state === 'sending' ? copy.auth.sending : copy.auth.submit}
        </Button>
        {problem ? <Notice tone="danger">{problem}</Notice> : null}
        {state === 'sent' ? (
          <p role="status" className="flex items-center gap-2.5 text-ready">
            <MailCheck size={18} aria-hidden="true" />
            {copy.auth.sent}
          </p>
        ) : null}
      </form>
      <Support />
    </div>
  )
}

function Support() {
  const [config, setConfig] = useState<Config | null>(null)
  useEffect(() => {
    loadConfig().then(setConfig, (error: unknown) => console.error('auth: no configuration', error))
  }, [])
  if (!config?.supportEmail) return null
  return (
    <p className="text-control">
      {copy.auth.issues}{' '}
      <a
        href={`mailto:${config.supportEmail}`}
        className="rounded-badge text-hi underline decoration-line-3 underline-offset-3 hover:decoration-beacon"
      >
        {config.supportEmail}
      </a>
    </p>
  )
}
