import { useNavigate, useSearch } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import { useResources } from '@/features/offers/queries'
import {
  bestOffer,
  filterOffers,
  gpuCounts,
  nearestCount,
  noFilters,
  type OfferFilters,
  rankTypes,
} from '@/lib/offers'

/** The chosen configuration and the offer that serves it best. Type and count live in the address. */
export function useConfiguration() {
  const navigate = useNavigate()
  const search = useSearch({ from: '/shell/create' })
  const resources = useResources()
  const [filters, setFilters] = useState<OfferFilters>(noFilters)
  const groups = resources.data ?? {}

  const types = useMemo(() => rankTypes(groups), [groups])
  const type = types.find((each) => each.type === search.gpu)?.type ?? types[0]?.type ?? null
  const matching = useMemo(
    () =>
      Object.fromEntries(Object.entries(groups).map(([key, offers]) => [key, filterOffers(offers, filters)])),
    [groups, filters],
  )
  const offers = (type === null ? undefined : matching[type]) ?? []
  const wished = gpuCounts.find((each) => String(each) === search.count) ?? 1
  const count = nearestCount(offers, wished)

  const put = (next: { gpu?: string; count?: string }) =>
    void navigate({ to: '/create', search: { ...search, ...next }, replace: true })
  return {
    resources,
    types,
    type,
    matching,
    offers,
    count,
    filters,
    offer: bestOffer(offers, count),
    allOffers: useMemo(() => Object.values(groups).flat(), [groups]),
    setFilters,
    chooseType: (gpu: string) => put({ gpu }),
    chooseCount: (next: number) => put({ count: String(next) }),
  }
}

export type Configuration = ReturnType<typeof useConfiguration>
