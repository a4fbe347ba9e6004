import { ChevronDown } from 'lucide-react'
import { copy } from '@/copy/en'
import { choices, noFilters, type OfferFilters } from '@/lib/offers'
import { Button } from '@/ui/button'
import { Field, Select, TextInput } from '@/ui/field'
import { useMedia } from '@/ui/media'
import type { Configuration } from './use-configuration'

/** What narrows the offers. Everything is optional; folded away on narrow screens. */
export function OfferFilterPanel(configuration: Configuration) {
  const wide = useMedia('(min-width: 768px)')
  const { filters, setFilters } = configuration
  const active = Object.values(filters).filter((value) => value !== '' && value !== null).length
  const fields = <Fields {...configuration} />
  const clear =
    active > 0 ? (
      <Button kind="ghost" size="small" onClick={() => setFilters(noFilters)}>
        {copy.create.clear}
      </Button>
    ) : null
  if (wide) {
    return (
      <section>
        <div className="mb-3 flex h-8 items-center justify-between">
          <h2 className="font-medium text-lead tracking-normal">{copy.create.filters}</h2>
          {clear}
        </div>
        {fields}
      </section>
    )
  }
  return (
    <details className="group card px-4 py-2">
      <summary className="flex min-h-8 list-none items-center justify-between font-medium text-hi text-lead [&::-webkit-details-marker]:hidden">
        <span>
          {copy.create.filters}
          {active > 0 ? <span className="price text-beacon"> ({active})</span> : null}
        </span>
        <ChevronDown
          size={16}
          aria-hidden="true"
          className="text-low transition-transform group-open:rotate-180"
        />
      </summary>
      <div className="grid grid-cols-1 gap-4 pt-4">
        {fields}
        {clear}
      </div>
    </details>
  )
}

function Fields({ allOffers, filters, setFilters }: Configuration) {
  const put = (next: Partial<OfferFilters>) => setFilters({ ...filters, ...next })
  return (
    <div className="grid grid-cols-2 gap-x-3 gap-y-4 md:grid-cols-3">
      <ChoiceField
        label={copy.create.socket}
        any={copy.create.anySocket}
        value={filters.socket}
        values={choices(allOffers, 'socket')}
        onChange={(socket) => put({ socket })}
      />
      <ChoiceField
        label={copy.create.country}
        any={copy.create.anyCountry}
        value={filters.country}
        values={choices(allOffers, 'country')}
        onChange={(country) => put({ country })}
      />
      <NumberField
        label={copy.create.maxPrice}
        step="0.01"
        value={filters.maxPrice}
        onChange={(maxPrice) => put({ maxPrice })}
      />
      <NumberField
        label={copy.create.minVram}
        step="1"
        value={filters.minVram}
        onChange={(minVram) => put({ minVram })}
      />
      <NumberField
        label={copy.create.minRam}
        step="1"
        value={filters.minRam}
        onChange={(minRam) => put({ minRam })}
      />
      <NumberField
        label={copy.create.minVcpu}
        step="1"
        value={filters.minVcpu}
        onChange={(minVcpu) => put({ minVcpu })}
      />
    </div>
  )
}

interface ChoiceFieldProps {
  label: string
  any: string
  value: string
  values: readonly string[]
  onChange: (value: string) => void
}

function ChoiceField({ label, any, value, values, onChange }: ChoiceFieldProps) {
  return (
    <Field label={label}>
      {(ids) => (
        <Select {...ids} value={value} onChange={(event) => onChange(event.target.value)}>
          <option value="">{any}</option>
          {values.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </Select>
      )}
    </Field>
  )
}

interface NumberFieldProps {
  label: string
  step: string
  value: number | null
  onChange: (value: number | null) => void
}

function NumberField({ label, step, value, onChange }: NumberFieldProps) {
  return (
    <Field label={label}>
      {(ids) => (
        <TextInput
          {...ids}
          type="number"
          inputMode="decimal"
          min="0"
          step={step}
          placeholder={copy.create.any}
          value={value ?? ''}
          onChange={(event) => onChange(event.target.value === '' ? null : event.target.valueAsNumber)}
        />
      )}
    </Field>
  )
}
