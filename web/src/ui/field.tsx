import { clsx } from 'clsx'
import { type ComponentProps, type ReactNode, useId } from 'react'

const control =
  'w-full rounded-control border border-line-3 bg-ink-0 px-3 text-body text-hi placeholder:text-low disabled:opacity-55 aria-invalid:border-danger'

interface FieldProps {
  label: string
  hint?: string | undefined
  error?: string | null | undefined
  /** Receives the ids that tie the control to its label, hint and error. */
  children: (ids: {
    id: string
    'aria-describedby': string | undefined
    'aria-invalid': boolean
  }) => ReactNode
}

/** A labelled control with its hint and, below it, what is wrong with it. */
export function Field({ label, hint, error, children }: FieldProps) {
  const id = useId()
  const described = clsx(hint && `${id}-hint`, error && `${id}-error`)
  return (
    <div className="grid grid-cols-1 gap-1.5">
      <label htmlFor={id} className="font-medium text-control text-hi">
        {label}
      </label>
      {children({ id, 'aria-describedby': described || undefined, 'aria-invalid': Boolean(error) })}
      {hint ? (
        <p id={`${id}-hint`} className="text-low text-meta">
          {hint}
        </p>
      ) : null}
      {error ? (
        <p id={`${id}-error`} role="alert" className="text-control text-danger">
          {error}
        </p>
      ) : null}
    </div>
  )
}

export function TextInput({ className, ...rest }: ComponentProps<'input'>) {
  return <input className={clsx(control, 'h-9 pointer-coarse:h-11', className)} {...rest} />
}

export function TextArea({ className, ...rest }: ComponentProps<'textarea'>) {
  return <textarea className={clsx(control, 'py-2', className)} {...rest} />
}

/** The platform's own select: the best one on phones and for assistive technology. */
export function Select({ className, children, ...rest }: ComponentProps<'select'>) {
  return (
    <span className="relative block">
      <select
        className={clsx(control, 'h-9 appearance-none truncate pr-8 pointer-coarse:h-11', className)}
        {...rest}
      >
        {children}
      </select>
      <svg
        viewBox="0 0 16 16"
        aria-hidden="true"
        fill="none"
        className="pointer-events-none absolute top-1/2 right-2.5 size-4 -translate-y-1/2 stroke-low"
      >
        <path d="m4.5 6.5 3.5 3.5 3.5-3.5" strokeWidth="1.5" strokeLinecap="round" strokeLinejoin="round" />
      </svg>
    </span>
  )
}

/** A switch with its text. */
export function Switch({
  label,
  checked,
  disabled,
  title,
  onChange,
}: {
  label: string
  checked: boolean
  disabled?: boolean
  title?: string | undefined
  onChange: (on: boolean) => void
}) {
  return (
    <button
      type="button"
      role="switch"
      aria-checked={checked}
      disabled={disabled}
      title={title}
      onClick={() => onChange(!checked)}
      className="group inline-flex min-h-8 items-center gap-2.5 rounded-control text-left text-control text-mid disabled:cursor-not-allowed disabled:opacity-60 pointer-coarse:min-h-11"
    >
      <span
        aria-hidden="true"
        className="relative h-4 w-7 shrink-0 rounded-full border border-line-3 bg-ink-0 transition-colors group-aria-checked:border-beacon group-aria-checked:bg-beacon"
      >
        <span className="absolute top-[2px] left-[2px] size-2.5 rounded-full bg-low transition-transform group-aria-checked:translate-x-3 group-aria-checked:bg-on-beacon" />
      </span>
      {label}
    </button>
  )
}
