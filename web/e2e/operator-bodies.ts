// What the server would tell an operator: a Homeport that is well, and one in a bad night.
import type { components } from '../src/api/schema.gen'
import { ago, id } from './bodies'

type Schemas = components['schemas']
type Overview = Schemas['OperatorOverview']
type Provider = Schemas['OperatorProvider']
type Margins = Schemas['OperatorMargins']

/** An instant some seconds ahead. */
const ahead = (seconds: number) => ago(-seconds)

export function aProvider(part: Partial<Provider> = {}): Provider {
  return {
    provider: 'vast',
    sells: true,
    health: 'works',
    breaker: { state: 'closed', reason: '' },
    trouble: '',
    asked_at: ago(20),
    listed_at: ago(20),
    offers: 1234,
    score: 97,
    machines: { ready: 41, slow: 2, failed: 1, bad_host: 0, lost: 0 },
    instances: { intent: 0, ambiguous: 0, running: 4, terminating: 0 },
    orphans: 0,
    burn_per_hour: 9.96,
    balance: { amount: 1250.5, read_at: ago(240), hours_left: 125, low: false, trouble: '' },
    balance_by_api: true,
    ...part,
  }
}

/** All is well: two clouds, five machines for five pods. */
export function anOverview(part: Partial<Overview> = {}): Overview {
  return {
    as_of: ago(1),
    providers: [
      aProvider({
        provider: 'runpod',
        offers: 88,
        instances: { intent: 0, ambiguous: 0, running: 1, terminating: 0 },
        burn_per_hour: 2.69,
        balance_by_api: false,
      }),
      aProvider(),
    ].map(withoutBalance),
    instances: {
      pods: 5,
      open: { intent: 0, ambiguous: 0, running: 5, terminating: 0 },
      terminating_long: 0,
      ambiguous_long: 0,
      last_sync_long: 0,
      without_pod: 0,
      orphans: 0,
      troubled: [],
      troubled_left_out: 0,
      orphan_list: [],
      orphans_left_out: 0,
      reaper: { armed: true },
    },
    jobs: { retrying: 0, given_up: 0, given_up_day: 0, kinds: [], kinds_left_out: 0 },
    ledger: {
      checked_at: ago(3 * 3600),
      wallets: 214,
      segments: 18_220,
      transfers: 402_118,
      problems: 0,
      imbalance: 0,
      ok: true,
      late: false,
    },
    clearing: { problems: 0, acknowledged: 0, difference: 0 },
    volumes: { damaged_objects: 0, garbage_bytes: 12_400_000_000 },
    ...part,
  }
}

/** A night in which the operator is woken. */
export function aBadNight(): Overview {
  const well = anOverview()
  return anOverview({
    providers: [
      aProvider({
        provider: 'hyperstack',
        health: 'no_funds',
        breaker: { state: 'open', reason: 'funds', opened_at: ago(1500), probe_at: ahead(300) },
        trouble: '402 Payment Required: your account has insufficient credit to create this virtual machine',
        offers: 41,
        score: 100,
        machines: { ready: 0, slow: 0, failed: 0, bad_host: 0, lost: 0 },
        instances: { intent: 0, ambiguous: 0, running: 0, terminating: 0 },
        burn_per_hour: 0,
        balance: { amount: -3.12, read_at: ago(240), low: true, trouble: '' },
      }),
      aProvider({
        provider: 'prime',
        health: 'stale',
        trouble: 'GET /api/v1/availability/: context deadline exceeded',
        listed_at: ago(900),
        offers: 310,
        score: 64,
        machines: { ready: 7, slow: 3, failed: 4, bad_host: 2, lost: 1 },
        instances: { intent: 0, ambiguous: 1, running: 2, terminating: 1 },
        burn_per_hour: 22.118,
        balance: { amount: 310, read_at: ago(7200), hours_left: 14, low: true, trouble: '503 from the API' },
      }),
      ...well.providers.map((each) => (each.provider === 'vast' ? { ...each, orphans: 1 } : each)),
      aProvider({
        provider: 'voltagepark',
        sells: false,
        health: 'off',
        offers: 0,
        instances: { intent: 0, ambiguous: 0, running: 0, terminating: 1 },
        burn_per_hour: 1.99,
        balance_by_api: false,
      }),
    ].map(withoutBalance),
    instances: {
      ...well.instances,
      pods: 8,
      open: { intent: 1, ambiguous: 1, running: 7, terminating: 2 },
      terminating_long: 1,
      ambiguous_long: 1,
      last_sync_long: 1,
      without_pod: 2,
      orphans: 2,
      troubled: [
        {
          name: 'hp-7f3a-5b0c91d2-1',
          provider: 'prime',
          cloud: 'runpod',
          gpu_type: 'H100_80GB',
          gpu_count: 8,
          state: 'terminating',
          since: ago(3900),
          tries: 14,
          reason: 'DELETE /api/v1/pods/5b0c91d2: 500 Internal Server Error',
          next_at: ahead(130),
          pod_id: id('5b0c91d2', 4),
          pod_status: 'deleted',
          burn_per_hour: 19.92,
        },
        {
          name: 'hp-7f3a-9e11ab04-2',
          provider: 'prime',
          cloud: 'prime',
          gpu_type: 'RTX_A6000',
          gpu_count: 1,
          state: 'ambiguous',
          since: ago(420),
          tries: 3,
          reason: '',
          pod_id: id('9e11ab04', 5),
          pod_status: 'pending',
          burn_per_hour: 0.49,
        },
        {
          name: 'hp-7f3a-3c77d0aa-1',
          provider: 'runpod',
          cloud: 'runpod',
          gpu_type: 'H100_80GB',
          gpu_count: 1,
          state: 'running',
          since: ago(26 * 3600),
          tries: 0,
          reason: '',
          pod_id: id('3c77d0aa', 6),
          pod_status: 'deleting',
          burn_per_hour: 2.49,
        },
      ],
      orphan_list: [
        { provider: 'vast', ref: '18220417', name: 'hp-7f3a-0c0ffee0-1', first_seen_at: ago(5400) },
        { provider: 'runpod', ref: 'k2x9q0w7vd13mz', name: '', first_seen_at: ago(200) },
      ],
      orphans_left_out: 0,
      reaper: { armed: true },
    },
    jobs: {
      retrying: 4,
      given_up: 3,
      given_up_day: 1,
      kinds: [
        {
          kind: 'mail.send',
          retrying: 1,
          given_up: 3,
          given_up_day: 1,
          last_error: 'dial tcp 203.0.113.25:587: connect: connection refused',
          last_at: ago(320),
          next_at: ahead(600),
        },
        {
          kind: 'pod.reconcile',
          retrying: 3,
          given_up: 0,
          given_up_day: 0,
          last_error: '',
          last_at: ago(40),
          next_at: ahead(70),
        },
      ],
      kinds_left_out: 0,
    },
    ledger: { ...ledgerOf(well), problems: 2, imbalance: -0.000001, ok: false },
  })
}

function ledgerOf({ ledger }: Overview): NonNullable<Overview['ledger']> {
  if (!ledger) throw new Error('no ledger')
  return ledger
}

/** A cloud whose API does not tell has none. */
function withoutBalance(provider: Provider): Provider {
  const { balance: _, ...rest } = provider
  return provider.balance_by_api ? provider : rest
}

function margin(paid: number, upstream: number): Schemas['OperatorMargin'] {
  const left = Math.round((paid - upstream) * 1e6) / 1e6
  return {
    paid,
    upstream,
    margin: left,
    negative: left < 0,
    paid_seconds: Math.round(paid * 1300),
    machine_seconds: Math.round(upstream * 1600),
  }
}

/** Margins of as many days, two of them with a loss, and an offer that costs more than it brings. */
export function someMargins(days = 30): Margins {
  const day = (before: number) => ago(before * 86_400).slice(0, 10)
  const perDay = Array.from({ length: days }, (_, n) => {
    const before = days - 1 - n
    if (before === 4) return { day: day(before), ...margin(12.4, 21.75) }
    if (before === 11) return { day: day(before), ...margin(0, 0) }
    if (before === 17) return { day: day(before), ...margin(0, 0.84) }
    const paid = 80 + 55 * Math.sin(n * 1.1) + n * 2
    return { day: day(before), ...margin(Number(paid.toFixed(2)), Number((paid * 0.83).toFixed(2))) }
  })
  const sum = (value: (row: (typeof perDay)[number]) => number) =>
    Number(perDay.reduce((all, row) => all + value(row), 0).toFixed(6))
  const offers = ['H100_80GB', 'A100_80GB', 'RTX_A6000', 'L40S'].flatMap((gpu, g) =>
    [1, 2, 4, 8].map((count) => ({
      provider: g % 2 === 0 ? 'prime' : 'vast',
      cloud: g % 2 === 0 ? 'runpod' : 'vast',
      gpu_type: gpu,
      gpu_count: count,
      ...(gpu === 'L40S' && count === 2
        ? margin(10.5, 13.7)
        : margin(30 * count + g, Number((24.5 * count - g).toFixed(2)))),
    })),
  )
  return {
    as_of: ago(2),
    from: day(days - 1),
    to: day(0),
    days,
    total: margin(
      sum(({ paid }) => paid),
      sum(({ upstream }) => upstream),
    ),
    per_day: perDay,
    per_provider: [
      { provider: 'hyperstack', ...margin(0, 0.0004) },
      { provider: 'prime', ...margin(940.2, 812.11) },
      { provider: 'vast', ...margin(1820, 1460.4) },
    ],
    per_provider_day: [],
    per_offer: offers.sort((a, b) => a.margin - b.margin),
    offers_left_out: 0,
  }
}
