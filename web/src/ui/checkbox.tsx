import { Check } from 'lucide-react'
import { useId } from 'react'

interface CheckboxProps {
  label: string
  /** A quieter line below: what it means to tick it. */
  hint?: string
  checked: boolean
  onChange: (on: boolean) => void
}

/** A box to tick with its text. */
export function Checkbox({ label, hint, checked, onChange }: CheckboxProps) {
  const id = useId()
  return (
    <div>
      <label className="flex min-h-8 w-fit items-center gap-2 font-medium text-control text-hi pointer-coarse:min-h-11">
        <span className="relative size-4 shrink-0">
          <input
            type="checkbox"
            checked={checked}
            aria-describedby={hint ? id : undefined}
            onChange={(event) => onChange(event.target.checked)}
            className="peer block size-4 appearance-none rounded-badge border border-line-3 bg-ink-0 transition-colors checked:border-beacon checked:bg-beacon"
          />
          <Check
            size={12}
            strokeWidth={3}
            aria-hidden="true"
            className="pointer-events-none absolute inset-0 m-auto hidden text-on-beacon peer-checked:block"
          />
        </span>
        {label}
      </label>
      {hint ? (
        <p id={id} className="pl-6 text-low text-meta">
          {hint}
        </p>
      ) : null}
    </div>
  )
}
