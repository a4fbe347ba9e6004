import type { ReactNode } from 'react'
import type { Offer } from '@/api/types'
import { copy } from '@/copy/en'
import { formatRate } from '@/lib/money'
import { gpuName, nameOf } from '@/lib/names'
import { pricePerGpu } from '@/lib/offers'
import { Badge } from '@/ui/badge'
import { Berths } from '@/ui/berths'
import { MissingList } from './missing-list'
import type { Missing } from './prerequisites'

interface SummaryProps {
  type: string | null
  offer: Offer | null
  volumeName: string | null
  keyName: string | null
  missing: readonly Missing[]
  timeLeft: string | null
  /** The button and what it says; elsewhere on narrow screens. */
  action: ReactNode
}

/** What will be created, and what is still missing for it. */
export function Summary({ type, offer, volumeName, keyName, missing, timeLeft, action }: SummaryProps) {
  return (
    <aside
      aria-label={copy.create.summary}
      className="rounded-card border border-line-2 bg-ink-2 p-5 xl:sticky xl:top-8"
    >
      <h2 className="font-medium text-lead tracking-normal">{copy.create.summary}</h2>
      <div className="mt-4 flex items-center justify-between gap-3">
        <span className="wrap-anywhere font-semibold text-card text-hi">
          {offer ? `${offer.gpuCount}x ${gpuName(offer.gpuType)}` : type ? gpuName(type) : '–'}
        </span>
        <Berths count={offer?.gpuCount ?? 0} label={copy.offer.berths(offer?.gpuCount ?? 0)} />
      </div>
      <dl className="mt-4 grid grid-cols-1 gap-2 text-control">
        <Row label={copy.create.provider} value={offer ? nameOf(offer.provider) : null} />
        <Row label={copy.create.location} value={offer?.country} />
        <Row label={copy.create.volume} value={volumeName} />
        <Row label={copy.create.key} value={keyName} />
      </dl>
      {offer ? (
        <p className="mt-3 flex flex-wrap gap-1.5">
          {offer.socket ? <Badge>{offer.socket}</Badge> : null}
          {offer.security ? <Badge>{nameOf(offer.security)}</Badge> : null}
          {offer.isSpot ? <Badge tone="warn">{copy.create.spot}</Badge> : null}
        </p>
      ) : null}
      {offer?.isSpot ? <p className="mt-2 text-low text-meta">{copy.create.spotHint}</p> : null}
      <div className="mt-4 flex items-baseline justify-between gap-3 border-line-2 border-t pt-4">
        <span className="text-control text-low">{copy.create.total}</span>
        <Price offer={offer} />
      </div>
      {offer ? (
        <p className="price mt-0.5 flex justify-between gap-3 text-low text-meta">
          <span>{timeLeft ? copy.create.atThisRate(timeLeft) : ''}</span>
          <span>{copy.create.perGpu(formatRate(pricePerGpu(offer)))}</span>
        </p>
      ) : null}
      <MissingList missing={missing} className="mt-4" />
      {action}
    </aside>
  )
}

/** The price of the whole pod. */
export function Price({ offer }: { offer: Offer | null }) {
  return (
    <span className="price font-semibold text-hi text-price">
      {offer ? formatRate(offer.price) : '–'}
      {offer ? <span className="font-normal text-control text-low">{copy.pods.perHour}</span> : null}
    </span>
  )
}

function Row({ label, value }: { label: string; value: string | null | undefined }) {
  return (
    <div className="flex justify-between gap-4">
      <dt className="text-low">{label}</dt>
      <dd className="min-w-0 truncate text-hi">{value || '–'}</dd>
    </div>
  )
}
