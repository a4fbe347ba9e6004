/** What ranking and filtering read of an offer. Sizes and the price are totals of the configuration. */
export interface OfferFacts {
  readonly gpuCount: number
  readonly gpuMemory: number
  readonly memory: number
  readonly vcpu: number
  /** USD per hour. */
  readonly price: number
  readonly socket: string
  readonly country: string
  readonly provider: string
}

/** Offers by GPU type. */
export type OfferGroups<Offer extends OfferFacts> = Readonly<Record<string, readonly Offer[]>>

/** The GPU types that come first, in this order. */
export const featuredTypes = ['H100_80GB', 'A100_80GB'] as const
/** The counts that can be chosen. */
export const gpuCounts = [1, 2, 3, 4, 5, 6, 7, 8] as const
/** Full bars of the specification. */
export const specMaxima = { vramPerGpu: 90, vram: 300, ram: 2000, vcpu: 256, gpus: 8 } as const
/** What Pro teams pay of a list price; the server applies it, this is for the landing page only. */
export const proFactor = 0.84

/** What narrows the offers; an empty field narrows nothing. Sizes and the price are those of the whole pod. */
export interface OfferFilters {
  readonly socket: string
  readonly country: string
  readonly minVram: number | null
  readonly minRam: number | null
  readonly minVcpu: number | null
  readonly maxPrice: number | null
}

export const noFilters: OfferFilters = {
  socket: '',
  country: '',
  minVram: null,
  minRam: null,
  minVcpu: null,
  maxPrice: null,
}

/** A GPU type with the cheapest price per GPU that it can be had for. */
export interface GpuType {
  readonly type: string
  readonly featured: boolean
  /** The lowest price per GPU of all its offers, or null without any. */
  readonly minPrice: number | null
}

/** What offers are ranked by: the total price divided by the count. */
export function pricePerGpu(offer: Pick<OfferFacts, 'price' | 'gpuCount'>): number {
  return offer.price / offer.gpuCount
}

/** The GPU types of the page: the featured ones first, the others by their lowest price. */
export function rankTypes(resources: OfferGroups<OfferFacts>): GpuType[] {
  const featured: readonly string[] = featuredTypes
  const place = (type: string) => (featured.includes(type) ? featured.indexOf(type) : featured.length)
  return Object.entries(resources)
    .map(([type, offers]) => ({
      type,
      featured: featured.includes(type),
      minPrice: offers.length > 0 ? Math.min(...offers.map(pricePerGpu)) : null,
    }))
    .sort(
      (a, b) =>
        place(a.type) - place(b.type) ||
        (a.minPrice ?? Number.POSITIVE_INFINITY) - (b.minPrice ?? Number.POSITIVE_INFINITY) ||
        a.type.localeCompare(b.type),
    )
}

/** The offers that pass every filter. */
export function filterOffers<Offer extends OfferFacts>(
  offers: readonly Offer[],
  filters: OfferFilters,
): Offer[] {
  return offers.filter(
    (offer) =>
      (filters.socket === '' || offer.socket === filters.socket) &&
      (filters.country === '' || offer.country === filters.country) &&
      (filters.minVram === null || offer.gpuMemory >= filters.minVram) &&
      (filters.minRam === null || offer.memory >= filters.minRam) &&
      (filters.minVcpu === null || offer.vcpu >= filters.minVcpu) &&
      (filters.maxPrice === null || offer.price <= filters.maxPrice),
  )
}

/** The offer for a count: the lowest price per GPU, ties by the provider's name. Null without one. */
export function bestOffer<Offer extends OfferFacts>(offers: readonly Offer[], count: number): Offer | null {
  const [best] = offers
    .filter((offer) => offer.gpuCount === count)
    .sort((a, b) => pricePerGpu(a) - pricePerGpu(b) || a.provider.localeCompare(b.provider))
  return best ?? null
}

/** The cheapest GPU of all, per GPU: what the landing page shows. */
export function cheapestOffer<Offer extends OfferFacts>(resources: OfferGroups<Offer>): Offer | null {
  const [best] = Object.values(resources)
    .flat()
    .sort((a, b) => pricePerGpu(a) - pricePerGpu(b) || a.provider.localeCompare(b.provider))
  return best ?? null
}

/** The count to stand on: the wished one if it has an offer, else the nearest that has, smaller before larger. */
export function nearestCount(offers: readonly OfferFacts[], wished: number): number {
  const counts = [...new Set(offers.map((offer) => offer.gpuCount))]
  counts.sort((a, b) => Math.abs(a - wished) - Math.abs(b - wished) || a - b)
  return counts[0] ?? wished
}

/** The different values of a field, for a filter to choose from. */
export function choices(offers: readonly OfferFacts[], field: 'socket' | 'country'): string[] {
  return [...new Set(offers.map((offer) => offer[field]))].filter((value) => value !== '').sort()
}

/** The providers that stand behind the offers, each once, in the order of the alphabet. */
export function providerNames(offers: readonly { provider: string }[]): string[] {
  return [...new Set(offers.map((offer) => offer.provider))].sort()
}
