import type { OperatorMargins, OperatorOverview, OperatorProvider } from '@/api/types'
import { copy } from '@/copy/en'
import { nameOf } from '@/lib/names'
import { countText, hoursText, usdText } from './model'

/** The parts of the page, by their ids. */
export type SectionId = 'clouds' | 'machines' | 'margin' | 'jobs' | 'books'

/** Something that needs a hand, and where it is to be seen. */
export interface Alert {
  readonly text: string
  readonly detail: string
  /** It costs money or trust now; everything else can wait for the morning. */
  readonly urgent: boolean
  readonly section: SectionId
}

const texts = copy.operator.alerts

/** What needs a hand, the urgent first. Without margins, which come later, nothing is said of them. */
export function alertsOf(overview: OperatorOverview, margins?: OperatorMargins): Alert[] {
  const all = [
    ...bookAlerts(overview),
    ...machineAlerts(overview),
    ...overview.providers.flatMap(cloudAlerts),
    ...jobAlerts(overview),
    ...(margins ? marginAlerts(margins) : []),
  ]
  return [...all.filter(({ urgent }) => urgent), ...all.filter(({ urgent }) => !urgent)]
}

function bookAlerts({ ledger, clearing, volumes }: OperatorOverview): Alert[] {
  const alerts: Alert[] = []
  const add = (text: string, detail: string, urgent = true) =>
    alerts.push({ text, detail, urgent, section: 'books' })
  if (ledger && !ledger.ok) {
    const rows = copy.operator.book.rows(ledger.problems)
    add(texts.ledger, texts.ledgerDetail(rows, usdText(ledger.imbalance)))
  }
  if (volumes.damaged_objects > 0) add(texts.damaged(volumes.damaged_objects), texts.damagedDetail)
  if (clearing.problems > 0) {
    add(texts.clearing(clearing.problems), texts.clearingDetail(usdText(clearing.difference)))
  }
  if (ledger?.late) add(texts.ledgerLate, '', false)
  return alerts
}

function machineAlerts({ instances }: OperatorOverview): Alert[] {
  const alerts: Alert[] = []
  const add = (text: string, detail: string) =>
    alerts.push({ text, detail, urgent: true, section: 'machines' })
  if (instances.orphans > 0) add(texts.orphans(instances.orphans), texts.orphansDetail)
  if (!instances.reaper.armed) add(texts.unarmed, texts.unarmedDetail)
  if (instances.ambiguous_long > 0) add(texts.ambiguous(instances.ambiguous_long), texts.ambiguousDetail)
  if (instances.terminating_long > 0)
    add(texts.terminating(instances.terminating_long), texts.terminatingDetail)
  if (instances.last_sync_long > 0) add(texts.lastSyncs(instances.last_sync_long), texts.lastSyncsDetail)
  return alerts
}

function cloudAlerts(provider: OperatorProvider): Alert[] {
  const { health, balance, trouble } = provider
  const name = nameOf(provider.provider)
  const alerts: Alert[] = []
  const add = (text: string, detail: string, urgent: boolean) =>
    alerts.push({ text, detail, urgent, section: 'clouds' })
  if (health === 'no_funds') add(texts.noFunds(name), trouble, true)
  if (health === 'broken') add(texts.broken(name), trouble, true)
  if (health === 'stale') add(texts.stale(name), trouble, true)
  // A cloud that was not asked yet is one of a server that has just started.
  if (health === 'silent' && provider.asked_at) add(texts.silent(name), trouble, false)
  if (!balance) return alerts
  if (balance.read_at && balance.low && health !== 'no_funds') {
    const amount = usdText(balance.amount)
    const { hours_left: hours } = balance
    const lasts = hours === undefined || balance.amount <= 0 ? null : hoursText(hours)
    add(texts.lowBalance(name), lasts === null ? texts.left(amount) : texts.lastsFor(amount, lasts), true)
  }
  if (balance.trouble) add(texts.unread(name), balance.trouble, false)
  return alerts
}

function jobAlerts({ jobs }: OperatorOverview): Alert[] {
  if (jobs.given_up_day === 0) return []
  const kinds = jobs.kinds.filter(({ given_up_day: count }) => count > 0)
  const detail = kinds.map(({ kind, given_up_day: count }) => `${kind} ${countText(count)}`).join(', ')
  return [{ text: texts.jobs(jobs.given_up_day), detail, urgent: true, section: 'jobs' }]
}

/** From which loss on it is worth a look, in USD: starts that failed cost cents and bring nothing. */
const worthALook = 1

/** One offer or one day below zero is a failed start; a cloud below zero is a price that is wrong. */
function marginAlerts({ days, total, per_provider: clouds }: OperatorMargins): Alert[] {
  const loss = (text: string, margin: number): Alert => {
    return { text, detail: texts.lossDetail(usdText(margin)), urgent: false, section: 'margin' }
  }
  if (total.margin <= -worthALook) return [loss(texts.loss(days), total.margin)]
  return clouds
    .filter(({ margin }) => margin <= -worthALook)
    .map(({ provider, margin }) => loss(texts.cloudLoss(nameOf(provider), days), margin))
}
