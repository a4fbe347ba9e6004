import { expect, test } from 'vitest'
import type { OperatorMargins, OperatorOverview, OperatorProvider } from '@/api/types'
import { alertsOf } from './alerts'

const at = '2026-11-22T05:50:00Z'
const provider: OperatorProvider = {
  provider: 'vast',
  sells: true,
  health: 'works',
  breaker: { state: 'closed', reason: '' },
  trouble: '',
  asked_at: at,
  listed_at: at,
  offers: 12,
  score: 97,
  machines: { ready: 1, slow: 0, failed: 0, bad_host: 0, lost: 0 },
  instances: { intent: 0, ambiguous: 0, running: 1, terminating: 0 },
  orphans: 0,
  burn_per_hour: 2.5,
  balance: { amount: 250, read_at: at, hours_left: 100, low: false, trouble: '' },
  balance_by_api: true,
}
const well: OperatorOverview = {
  as_of: at,
  providers: [provider],
  instances: {
    pods: 1,
    open: { intent: 0, ambiguous: 0, running: 1, terminating: 1 },
    terminating_long: 0,
    ambiguous_long: 0,
    last_sync_long: 0,
    without_pod: 1,
    orphans: 0,
    troubled: [],
    troubled_left_out: 0,
    orphan_list: [],
    orphans_left_out: 0,
    reaper: { armed: true },
  },
  jobs: { retrying: 3, given_up: 2, given_up_day: 0, kinds: [], kinds_left_out: 0 },
  ledger: {
    checked_at: at,
    wallets: 10,
    segments: 200,
    transfers: 4000,
    problems: 0,
    imbalance: 0,
    ok: true,
    late: false,
  },
  clearing: { problems: 0, acknowledged: 1, difference: 5 },
  volumes: { damaged_objects: 0, garbage_bytes: 12 },
}
const none = { paid: 0, upstream: 0, margin: 0, negative: false, paid_seconds: 0, machine_seconds: 0 }
const loss = { ...none, upstream: 3.2, margin: -3.2, negative: true }
const margins: OperatorMargins = {
  as_of: at,
  from: '2026-10-24',
  to: '2026-11-22',
  days: 30,
  total: none,
  per_day: [],
  per_provider: [],
  per_provider_day: [],
  per_offer: [],
  offers_left_out: 0,
}

function cloud(part: Partial<OperatorProvider>): OperatorOverview {
  return { ...well, providers: [{ ...provider, ...part }] }
}

test('a Homeport that retries, ends machines and waits is well', () => {
  expect(alertsOf(well, margins)).toEqual([])
  const { ledger: _, ...unchecked } = well
  expect(alertsOf(unchecked)).toEqual([])
})

test('the urgent come first, each with its section', () => {
  const overview: OperatorOverview = {
    ...cloud({ health: 'silent', trouble: 'no route to host' }),
    ...{
      ledger: { ...(well.ledger ?? expect.fail()), problems: 2, imbalance: -0.000001, ok: false, late: true },
    },
    instances: {
      ...well.instances,
      orphans: 1,
      ambiguous_long: 2,
      terminating_long: 1,
      last_sync_long: 1,
      reaper: { armed: false },
    },
    jobs: {
      ...well.jobs,
      given_up_day: 1,
      kinds: [
        { kind: 'mail.send', retrying: 0, given_up: 1, given_up_day: 1, last_error: 'refused' },
        { kind: 'pod.reconcile', retrying: 2, given_up: 1, given_up_day: 0, last_error: '' },
      ],
    },
    clearing: { problems: 1, acknowledged: 0, difference: 5 },
    volumes: { damaged_objects: 1, garbage_bytes: 0 },
  }
  const alerts = alertsOf(overview, { ...margins, total: loss })
  expect(alerts.map(({ section, urgent, text, detail }) => [section, urgent, text, detail])).toEqual([
    [
      'books',
      true,
      'The ledger does not add up',
      '2 rows wrong, -$0.000001 out of balance. To see each, run: homeport ledger verify',
    ],
    [
      'books',
      true,
      '1 object of a volume is damaged',
      'To see which version of each is whole, run: homeport volume damage',
    ],
    [
      'books',
      true,
      '1 payment differs from the processor',
      'The difference is $5.00. To see each, run: homeport ledger reconcile',
    ],
    ['machines', true, '1 machine is orphaned', 'A cloud runs and bills what no pod owns.'],
    [
      'machines',
      true,
      'Orphans are not ended: the database was restored',
      'Look at the list, then run: homeport reaper arm',
    ],
    [
      'machines',
      true,
      '2 machines have been ambiguous for more than 5 minutes',
      'A launch was not answered clearly: what it made may run and cost. It is looked for by itself.',
    ],
    [
      'machines',
      true,
      '1 machine has been terminating for more than 15 minutes',
      'What is not gone yet may be billed. It is tried again by itself.',
    ],
    [
      'machines',
      true,
      '1 pod has been in its last sync for more than a day',
      'Its machine costs us, its team nothing. If the volume does not grow, run: homeport pod cut-off POD',
    ],
    ['jobs', true, '1 job was given up in the last 24 hours', 'mail.send 1'],
    ['books', false, 'The nightly check of the ledger is late', ''],
    ['clouds', false, 'Vast never gave a good catalogue', 'no route to host'],
    ['margin', false, 'The clouds took more than users paid in the last 30 days', 'The margin is -$3.20.'],
  ])
})

test('a cloud that sells nothing says why, once', () => {
  const low = { amount: -4, read_at: at, hours_left: 0, low: true, trouble: '' }
  const said = (part: Partial<OperatorProvider>) =>
    alertsOf(cloud(part)).map(({ text, detail, urgent }) => [text, detail, urgent])
  expect(said({ health: 'no_funds', trouble: 'insufficient credit', balance: low })).toEqual([
    ['Vast is out of funds: its offers are off sale', 'insufficient credit', true],
  ])
  expect(said({ health: 'broken', trouble: '502' })).toEqual([
    ['Vast fails: its offers are off sale', '502', true],
  ])
  expect(said({ health: 'stale' })).toEqual([
    ['Vast gives no good catalogue: its offers are hidden', '', true],
  ])
  const { asked_at: _, listed_at: __, ...unasked } = provider
  expect(alertsOf({ ...well, providers: [{ ...unasked, health: 'silent' }] })).toEqual([])
  expect(said({ health: 'off', sells: false })).toEqual([])
  expect(said({ health: 'trial', breaker: { state: 'half', reason: 'failures' } })).toEqual([])
})

test('money that ends within a day is said with how long it lasts, and a question without an answer', () => {
  const said = (balance: NonNullable<OperatorProvider['balance']>) =>
    alertsOf(cloud({ balance })).map(({ text, detail, urgent }) => [text, detail, urgent])
  expect(said({ amount: 50, read_at: at, hours_left: 20, low: true, trouble: '' })).toEqual([
    ['Vast is short of funds', '$50.00 last 20 h at the present burn.', true],
  ])
  expect(said({ amount: -1, read_at: at, hours_left: 0, low: true, trouble: '' })).toEqual([
    ['Vast is short of funds', '-$1.00 left.', true],
  ])
  expect(said({ amount: 0, read_at: at, low: true, trouble: '' })).toEqual([
    ['Vast is short of funds', '$0.00 left.', true],
  ])
  expect(said({ amount: 0, low: true, trouble: '401' })).toEqual([
    ['The balance at Vast could not be read', '401', false],
  ])
})

test('a cloud that takes more than users pay is named where all together earn, failed starts are not', () => {
  const of = (name: string, margin: number) => ({
    ...none,
    provider: name,
    paid: 10,
    margin,
    negative: margin < 0,
  })
  const clouds = [of('prime', -1.5), of('vast', 4), of('verda', -0.99)]
  const said = alertsOf(well, { ...margins, days: 7, total: { ...none, margin: 3.5 }, per_provider: clouds })
  expect(said.map(({ text, detail, urgent }) => [text, detail, urgent])).toEqual([
    ['Prime took more than users paid in the last 7 days', 'The margin is -$1.50.', false],
  ])
})
