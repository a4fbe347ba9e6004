import { clsx } from 'clsx'
import { copy } from '@/copy/en'
import { formatRate } from '@/lib/money'
import { gpuName } from '@/lib/names'
import { gpuCounts, pricePerGpu } from '@/lib/offers'
import { Badge } from '@/ui/badge'
import type { Configuration } from './use-configuration'

const choice =
  'border transition-colors has-focus-visible:outline-2 has-focus-visible:outline-beacon has-focus-visible:outline-offset-2'

function look(chosen: boolean, disabled: boolean): string {
  if (chosen) return 'border-beacon bg-ink-2'
  return disabled ? 'border-line-1 opacity-55' : 'border-line-1 bg-ink-1 hover:border-line-2 hover:bg-ink-2'
}

/** The GPU types as cards: the featured ones first, then by price. */
export function GpuTypes({ types, type, matching, chooseType }: Configuration) {
  return (
    <fieldset className="min-w-0">
      <legend className="mb-3 font-medium text-hi text-lead">{copy.create.type}</legend>
      <div className="grid grid-cols-1 gap-3 sm:grid-cols-2 lg:grid-cols-3">
        {types.map((each) => {
          const offers = matching[each.type] ?? []
          const chosen = each.type === type
          const disabled = offers.length === 0 && !chosen
          return (
            <label
              key={each.type}
              className={clsx('block rounded-card px-4 py-3.5', choice, look(chosen, disabled))}
            >
              <input
                type="radio"
                name="gpu-type"
                className="sr-only"
                value={each.type}
                checked={chosen}
                disabled={disabled}
                onChange={() => chooseType(each.type)}
              />
              <span className="flex items-center justify-between gap-2">
                <span className="font-semibold text-hi text-lead">{gpuName(each.type)}</span>
                {each.featured ? <Badge tone="beacon">{copy.create.featured}</Badge> : null}
              </span>
              <span className="price mt-1 block text-control">
                {offers.length > 0 ? (
                  <>
                    {copy.create.from(formatRate(Math.min(...offers.map(pricePerGpu))))}
                    <span className="text-low">{copy.create.perGpuHour}</span>
                  </>
                ) : (
                  <span className="text-low">{copy.create.noOffer}</span>
                )}
              </span>
            </label>
          )
        })}
      </div>
    </fieldset>
  )
}

/** The counts from 1 to 8; those without an offer cannot be chosen. */
export function GpuCounts({ offers, count, chooseCount }: Configuration) {
  const offered = new Set(offers.map((offer) => offer.gpuCount))
  return (
    <fieldset className="min-w-0">
      <legend className="mb-3 font-medium text-hi text-lead">{copy.create.count}</legend>
      <div className="grid grid-cols-4 gap-2 sm:flex">
        {gpuCounts.map((each) => {
          const disabled = !offered.has(each)
          const chosen = each === count && !disabled
          return (
            <label
              key={each}
              title={disabled ? copy.create.noCount : undefined}
              className={clsx(
                'price grid h-11 min-w-13 place-items-center rounded-control font-medium text-lead',
                choice,
                look(chosen, disabled),
                chosen ? 'text-hi' : 'text-mid',
              )}
            >
              <input
                type="radio"
                name="gpu-count"
                className="sr-only"
                aria-label={copy.create.countLabel(each)}
                checked={chosen}
                disabled={disabled}
                onChange={() => chooseCount(each)}
              />
              {each}
            </label>
          )
        })}
      </div>
    </fieldset>
  )
}
