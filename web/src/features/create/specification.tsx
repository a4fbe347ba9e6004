import type { Offer } from '@/api/types'
import { copy } from '@/copy/en'
import { specMaxima } from '@/lib/offers'
import { SpecBar } from '@/ui/meter'

/** What the chosen offer has, against the largest that is common. */
export function Specification({ offer }: { offer: Offer | null }) {
  const { bars } = copy.offer
  const perGpu = offer ? Math.round((offer.gpuMemory / offer.gpuCount) * 10) / 10 : 0
  return (
    <section className="card p-5">
      <h2 className="mb-4 font-medium text-lead tracking-normal">{copy.create.specification}</h2>
      <div className="grid grid-cols-1 gap-3">
        <SpecBar label={bars.vramPerGpu} value={perGpu} max={specMaxima.vramPerGpu} text={`${perGpu} GB`} />
        <SpecBar
          label={bars.vram}
          value={offer?.gpuMemory ?? 0}
          max={specMaxima.vram}
          text={`${offer?.gpuMemory ?? 0} GB`}
        />
        <SpecBar
          label={bars.ram}
          value={offer?.memory ?? 0}
          max={specMaxima.ram}
          text={`${offer?.memory ?? 0} GB`}
        />
        <SpecBar
          label={bars.vcpu}
          value={offer?.vcpu ?? 0}
          max={specMaxima.vcpu}
          text={String(offer?.vcpu ?? 0)}
        />
        <SpecBar
          label={bars.gpus}
          value={offer?.gpuCount ?? 0}
          max={specMaxima.gpus}
          text={String(offer?.gpuCount ?? 0)}
        />
      </div>
    </section>
  )
}
