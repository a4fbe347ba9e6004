import type { Notice } from '@/api/types'
import { copy } from '@/copy/en'
import { formatUsd } from '@/lib/money'
import { formatDateTime } from '@/lib/time'

/** What a notice says: data or a plan at stake is a danger, everything else is for information. */
export interface NoticeText {
  readonly tone: 'info' | 'danger'
  readonly title: string
  readonly detail: string
  readonly next: string
}

const notices = copy.notices

export function textOf(notice: Notice): NoticeText {
  const at = notice.ends_at ? formatDateTime(notice.ends_at) : notices.soon
  const spent = notices.spent(formatUsd(notice.month_spent), formatUsd(notice.month_limit))
  const funds = (title: string, detail: string): NoticeText => ({
    tone: 'info',
    title,
    detail,
    next: notices.addFunds,
  })
  const storage = (title: string, detail: string): NoticeText => ({
    ...funds(title, detail),
    tone: 'danger',
  })
  const spend = (title: string, detail: string): NoticeText => ({
    ...funds(title, detail),
    next: notices.seeSpending,
  })
  const plan = (title: string, detail: string): NoticeText => ({
    ...storage(title, detail),
    next: notices.payPlan,
  })
  const topUp = (title: string, detail: string): NoticeText => ({
    ...funds(title, detail),
    next: notices.openBilling,
  })
  const card = notice.card ?? notices.theCard
  switch (notice.kind) {
    case 'runway_24h':
      return funds(notices.runway24h, notices.runsOut(at))
    case 'runway_1h':
      return funds(notices.runway1h, notices.runsOut(at))
    case 'runway_15m':
      return funds(notices.runway15m, notices.runsOut(at))
    case 'balance_empty':
      return funds(notices.empty, notices.emptyDetail(at))
    case 'storage_frozen':
      return storage(notices.frozen, notices.frozenDetail(at))
    case 'storage_soon':
    case 'storage_last':
      return storage(notices.trashSoon, notices.trashSoonDetail(at))
    case 'storage_trashed':
      return storage(notices.trashed, notices.trashedDetail(at))
    case 'spend_80':
      return spend(notices.spend80, spent)
    case 'spend_95':
      return spend(notices.spend95, spent)
    case 'spend_limit':
      return spend(notices.limit, notices.limitDetail(at))
    case 'plan_unpaid':
      return plan(notices.planUnpaid, notices.planUnpaidDetail(at))
    case 'plan_ends':
      return plan(notices.planEnds, notices.planEndsDetail(at))
    case 'topup_declined':
      return topUp(notices.topUpDeclined, notices.topUpDeclinedDetail(card, at))
    case 'topup_off':
      return topUp(notices.topUpOff, notices.topUpOffDetail(card))
    case 'topup_authentication':
      return topUp(notices.topUpOff, notices.topUpAuthenticationDetail(card))
    case 'topup_capped':
      return topUp(notices.topUpCapped, notices.topUpCappedDetail(at))
    case 'topup_card_removed':
      return topUp(notices.topUpOff, notices.topUpCardRemovedDetail(card))
  }
}
