import { describe, expect, test } from 'vitest'
import { levelOf, percentOf } from './level'
import {
  bestOffer,
  cheapestOffer,
  choices,
  filterOffers,
  nearestCount,
  noFilters,
  type OfferFacts,
  type OfferFilters,
  pricePerGpu,
  proFactor,
  providerNames,
  rankTypes,
} from './offers'

const offer = (over: Partial<OfferFacts> = {}): OfferFacts => ({
  gpuCount: 1,
  gpuMemory: 80,
  memory: 180,
  vcpu: 26,
  price: 2,
  socket: 'SXM5',
  country: 'CA',
  provider: 'b',
  ...over,
})

describe('types', () => {
  test('the featured ones come first, the rest by the lowest price per GPU', () => {
    const groups = {
      L40S: [offer({ price: 0.8 })],
      A100_80GB: [offer({ price: 1.3 })],
      RTX_4090: [offer({ price: 2, gpuCount: 8 })],
      H100_80GB: [offer({ price: 2.5 })],
      EMPTY: [],
    }
    expect(rankTypes(groups).map((each) => each.type)).toEqual([
      'H100_80GB',
      'A100_80GB',
      'RTX_4090',
      'L40S',
      'EMPTY',
    ])
  })

  test('without H100 the A100 is first', () => {
    const ranked = rankTypes({ L40S: [offer({ price: 0.1 })], A100_80GB: [offer()] })
    expect(ranked.map(({ type, featured }) => [type, featured])).toEqual([
      ['A100_80GB', true],
      ['L40S', false],
    ])
  })
})

describe('the best offer', () => {
  test('has the lowest price per GPU of its count, ties by the name of the provider', () => {
    const offers = [
      offer({ gpuCount: 2, price: 5, provider: 'a' }),
      offer({ gpuCount: 2, price: 4, provider: 'z' }),
      offer({ gpuCount: 2, price: 4, provider: 'm' }),
      offer({ gpuCount: 1, price: 1, provider: 'a' }),
    ]
    expect(bestOffer(offers, 2)?.provider).toBe('m')
    expect(bestOffer(offers, 3)).toBeNull()
  })

  test('of all is the cheapest per GPU: 2x B at 1.60 beats 1x A at 1.00', () => {
    const best = cheapestOffer({ A: [offer({ price: 1 })], B: [offer({ price: 1.6, gpuCount: 2 })] })
    expect(best?.gpuCount).toBe(2)
    expect((pricePerGpu(best ?? offer()) * proFactor).toFixed(3)).toBe('0.672')
    expect(cheapestOffer({})).toBeNull()
  })
})

test.each<[keyof OfferFilters, Partial<OfferFilters>, Partial<OfferFacts>]>([
  ['socket', { socket: 'PCIe' }, { socket: 'PCIe' }],
  ['country', { country: 'NO' }, { country: 'NO' }],
  ['minVram', { minVram: 160 }, { gpuMemory: 160 }],
  ['minRam', { minRam: 500 }, { memory: 500 }],
  ['minVcpu', { minVcpu: 64 }, { vcpu: 64 }],
  ['maxPrice', { maxPrice: 1.5 }, { price: 1.5 }],
])('the filter %s keeps what reaches it and drops the rest', (_name, filter, fitting) => {
  const fits = offer(fitting)
  expect(filterOffers([offer(), fits], { ...noFilters, ...filter })).toEqual([fits])
  expect(filterOffers([offer(), fits], noFilters)).toHaveLength(2)
})

test.each([
  [[1, 2, 8], 2, 2],
  [[1, 4, 8], 3, 4],
  [[2, 4], 3, 2],
  [[], 5, 5],
])('of the counts %s the nearest to %i is %i', (counts, wished, nearest) => {
  expect(
    nearestCount(
      counts.map((gpuCount) => offer({ gpuCount })),
      wished,
    ),
  ).toBe(nearest)
})

test('choices are the different values, providers are counted once', () => {
  const offers = [offer({ country: 'NO' }), offer(), offer({ country: '' }), offer({ provider: 'c' })]
  expect(choices(offers, 'country')).toEqual(['CA', 'NO'])
  expect(providerNames(offers)).toHaveLength(2)
})

describe('levels', () => {
  test.each([
    [25, 1],
    [26, 2],
    [50, 2],
    [51, 3],
    [75, 3],
    [76, 4],
    [640, 4],
  ])('%i %% is level %i', (value, level) => expect(levelOf(value, 100)).toBe(level))

  test('bars are clamped', () => {
    expect(percentOf(640, 300)).toBe(100)
    expect(percentOf(-1, 300)).toBe(0)
    expect(percentOf(75, 300)).toBe(25)
  })
})
