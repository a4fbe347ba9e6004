import { clsx } from 'clsx'
import type { Offer } from '@/api/types'
import { copy } from '@/copy/en'
import { useResources } from '@/features/offers/queries'
import { formatRate } from '@/lib/money'
import { gpuName } from '@/lib/names'
import { cheapestOffer, pricePerGpu, proFactor, providerNames, specMaxima } from '@/lib/offers'
import { Dot } from '@/ui/badge'
import { Berths } from '@/ui/berths'
import { SpecBar } from '@/ui/meter'
import { Skeleton } from '@/ui/spinner'

/** The cheapest GPU that can be rented now, at what a Pro team pays for it. */
export function CheapestTicket() {
  const { data, isError } = useResources()
  const offers = Object.values(data ?? {})
    .flat()
    .map((offer) => ({ ...offer, price: offer.listPrice || offer.price }))
  const best = cheapestOffer({ all: offers })
  const unknown = isError || (data !== undefined && !best)
  return (
    <aside aria-label={copy.landing.preview} className="card self-center">
      <div className="flex h-11 items-center justify-between border-line-1 border-b px-5 text-meta">
        <span className="flex items-center gap-2 font-medium text-ready">
          <Dot tone="ready" />
          {copy.landing.live}
        </span>
        <span className="price text-low">
          {best ? copy.landing.offers(offers.length, providerNames(offers).length) : null}
        </span>
      </div>
      {/* What waits keeps its place under what comes: the page must not move. */}
      <div className="grid grid-cols-1 p-5">
        <Waiting done={best !== null || unknown} />
        <div className="col-start-1 row-start-1 min-w-0">
          {best ? <Ticket offer={best} /> : unknown ? <p>{copy.landing.noPreview}</p> : null}
        </div>
      </div>
    </aside>
  )
}

function Ticket({ offer }: { offer: Offer }) {
  const { bars } = copy.offer
  const perGpu = Math.round((offer.gpuMemory / offer.gpuCount) * 10) / 10
  return (
    <>
      <div className="flex h-7 items-center justify-between gap-3">
        <h2 className="truncate font-semibold text-card">{gpuName(offer.gpuType)}</h2>
        <Berths count={offer.gpuCount} label={copy.offer.berths(offer.gpuCount)} />
      </div>
      <p className="mt-3 text-control text-low">{copy.landing.startingAt}</p>
      <p className="price mt-1 flex h-11 flex-wrap items-baseline gap-x-2">
        <span className="font-semibold text-display text-hi">
          {formatRate(pricePerGpu(offer) * proFactor)}
        </span>
        <span className="text-low">
          {copy.landing.perGpu} {copy.landing.withPro}
        </span>
      </p>
      <div className="mt-5 grid grid-cols-1 gap-3">
        <SpecBar label={bars.vramPerGpu} value={perGpu} max={specMaxima.vramPerGpu} text={`${perGpu} GB`} />
        <SpecBar
          label={bars.vram}
          value={offer.gpuMemory}
          max={specMaxima.vram}
          text={`${offer.gpuMemory} GB`}
        />
        <SpecBar label={bars.ram} value={offer.memory} max={specMaxima.ram} text={`${offer.memory} GB`} />
        <SpecBar label={bars.vcpu} value={offer.vcpu} max={specMaxima.vcpu} text={String(offer.vcpu)} />
        <SpecBar
          label={bars.gpus}
          value={offer.gpuCount}
          max={specMaxima.gpus}
          text={String(offer.gpuCount)}
        />
      </div>
    </>
  )
}

/** As high as a ticket, row by row. */
function Waiting({ done }: { done: boolean }) {
  return (
    <div aria-hidden="true" className={clsx('col-start-1 row-start-1', done && 'invisible')}>
      <div className="flex h-7 items-center">
        <Skeleton className="h-5 w-40" />
      </div>
      <p className="mt-3 text-control">&nbsp;</p>
      <Skeleton className="mt-1 h-11 w-48" />
      <div className="mt-5 grid grid-cols-1 gap-3">
        {Object.keys(copy.offer.bars).map((bar) => (
          <div key={bar} className="flex items-center text-meta">
            &nbsp;
            <Skeleton className="h-1.5 flex-1" />
          </div>
        ))}
      </div>
    </div>
  )
}
