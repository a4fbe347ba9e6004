import { useQuery } from '@tanstack/react-query'
import { ExternalLink } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { reasonOf } from '@/api/error'
import type { Subscription, Team } from '@/api/types'
import { copy } from '@/copy/en'
import { useBalance } from '@/features/wallet/queries'
import { formatUsd, formatWholeUsd } from '@/lib/money'
import { formatDay, monthName } from '@/lib/month'
import { Badge } from '@/ui/badge'
import { Button } from '@/ui/button'
import { ButtonLink } from '@/ui/button-link'
import { ListError } from '@/ui/list-error'
import { Meter } from '@/ui/meter'
import { usePageRestored } from '@/ui/page-restored'
import { Skeleton } from '@/ui/spinner'
import { AutoTopUpRows, MyCardRow } from './auto-rows'
import { EndDialog } from './end-dialog'
import { LimitDialog } from './limit-dialog'
import { phaseOf } from './model'
import { subscriptionQuery, useOpenPortal, useResumeSubscription } from './plan-queries'
import { Row } from './row'
import { SeatsDialog } from './seats-dialog'

const texts = copy.plan

/** What the team pays each month and may spend; admins change it, the others look. */
export function PlanSection({ team }: { team: Team }) {
  const admin = team.role === 'admin'
  const section = useRef<HTMLElement>(null)
  useEffect(() => {
    // A link to this part of the page was there before the part was.
    if (location.hash === '#plan') section.current?.scrollIntoView()
  }, [])
  return (
    <section ref={section} id="plan" aria-label={texts.title} className="scroll-mt-20">
      <h2 className="font-semibold text-card">{texts.title}</h2>
      <p className="mt-1 mb-4 text-low text-meta">{admin ? texts.hint : texts.adminsOnly}</p>
      <ul className="card divide-y divide-line-1">
        <PlanRow team={team} admin={admin} />
        <LimitRow team={team} admin={admin} />
        {admin ? <AutoTopUpRows teamId={team.id} /> : <MyCardRow teamId={team.id} />}
        {admin ? <PortalRow teamId={team.id} /> : null}
      </ul>
    </section>
  )
}

function PlanRow({ team, admin }: { team: Team; admin: boolean }) {
  const query = useQuery({ ...subscriptionQuery(team.id), enabled: !team.is_personal })
  const { data: plan, error, isFetching, refetch } = query
  if (team.is_personal || plan === null) {
    return (
      <Row
        title={team.plan === 'pro' ? texts.pro : texts.hobby}
        actions={
          team.plan === 'pro' ? null : (
            <ButtonLink size="small" to="/create-team">
              {texts.seePlans}
            </ButtonLink>
          )
        }
      >
        {team.plan === 'pro' ? null : <p>{texts.hobbyText}</p>}
      </Row>
    )
  }
  if (plan === undefined) {
    return (
      <Row title={texts.pro}>
        {error ? (
          <ListError
            text={texts.failed}
            detail={reasonOf(error)}
            busy={isFetching}
            onRetry={() => void refetch()}
          />
        ) : (
          <>
            <Skeleton className="h-5 w-56" />
            <Skeleton className="h-4 w-72 max-w-full" />
          </>
        )}
      </Row>
    )
  }
  return <Paid team={team} plan={plan} admin={admin} />
}

function Paid({ team, plan, admin }: { team: Team; plan: Subscription; admin: boolean }) {
  const [open, setOpen] = useState<'seats' | 'end' | null>(null)
  const resume = useResumeSubscription(team.id)
  const unpaid = plan.status === 'past_due' || plan.status === 'unpaid'
  const day = plan.period_end_at ? formatDay(plan.period_end_at) : null
  const close = () => setOpen(null)
  return (
    <Row
      title={texts.pro}
      badge={<PlanBadge plan={plan} unpaid={unpaid} />}
      actions={
        admin ? (
          <>
            <Button size="small" onClick={() => setOpen('seats')}>
              {texts.changeSeats}
            </Button>
            {plan.ends ? (
              <Button size="small" kind="primary" busy={resume.isPending} onClick={() => resume.mutate()}>
                {texts.resume}
              </Button>
            ) : (
              <Button size="small" kind="danger" onClick={() => setOpen('end')}>
                {texts.end}
              </Button>
            )}
          </>
        ) : null
      }
    >
      <p className="price text-hi">
        {texts.perMonth(formatWholeUsd(plan.seat_price * plan.member_count))}
        <span className="text-mid"> · {texts.seats(plan.member_count, plan.seats_taken)}</span>
      </p>
      <p className="text-low text-meta">{unpaid ? texts.unpaid : day && stateText(plan.ends, day)}</p>
      <SeatsDialog teamId={team.id} plan={plan} open={open === 'seats'} onClose={close} />
      <EndDialog teamId={team.id} plan={plan} open={open === 'end'} onClose={close} />
    </Row>
  )
}

function PlanBadge({ plan, unpaid }: { plan: Subscription; unpaid: boolean }) {
  if (unpaid) return <Badge tone="danger">{texts.unpaidBadge}</Badge>
  return plan.ends ? <Badge tone="warn">{texts.endsBadge}</Badge> : null
}

function stateText(ends: boolean, day: string): string {
  return ends ? texts.ends(day) : texts.renews(day)
}

function LimitRow({ team, admin }: { team: Team; admin: boolean }) {
  const query = useBalance()
  const { data: balance } = query
  const [open, setOpen] = useState(false)
  const { month_spent: spent, month_limit: limit, plan_limit: planLimit } = balance ?? {}
  if (!balance || spent === undefined || limit === undefined || planLimit === undefined) {
    return (
      <Row title={texts.limit}>
        {phaseOf(query) === 'failed' ? (
          // The page says at its top why, and offers to try again.
          <p>{copy.wallet.balanceFailed}</p>
        ) : (
          <Skeleton className="h-5 w-64 max-w-full" />
        )}
      </Row>
    )
  }
  const month = monthName(balance.last_updated.slice(0, 7))
  const own = limit !== planLimit
  return (
    <Row
      title={texts.limit}
      actions={
        admin ? (
          <Button size="small" onClick={() => setOpen(true)}>
            {texts.limitChange}
          </Button>
        ) : null
      }
    >
      {limit > 0 ? (
        <>
          <p className="price">{texts.limitSpent(formatUsd(spent), formatUsd(limit), month)}</p>
          <Meter
            label={texts.limitMeter}
            value={Math.max(0, spent)}
            max={limit}
            text={texts.limitSpent(formatUsd(spent), formatUsd(limit), month)}
            palette="usage"
            className="my-1 max-w-96"
          />
          <p className="text-low text-meta">
            {own && planLimit > 0 ? texts.limitOwn(formatUsd(planLimit)) : null}
            {own ? null : texts.limitPlan}
          </p>
        </>
      ) : (
        <p className="price">{texts.limitNone(formatUsd(spent), month)}</p>
      )}
      <LimitDialog
        teamId={team.id}
        open={open}
        onClose={() => setOpen(false)}
        spent={spent}
        limit={limit}
        planLimit={planLimit}
      />
    </Row>
  )
}

function PortalRow({ teamId }: { teamId: string }) {
  const { mutate, isPending, isSuccess, reset } = useOpenPortal(teamId)
  usePageRestored(reset)
  return (
    <Row
      title={texts.portal}
      actions={
        <Button
          size="small"
          busy={isPending || isSuccess}
          icon={<ExternalLink size={14} aria-hidden="true" />}
          onClick={() => mutate()}
        >
          {texts.portalOpen}
        </Button>
      }
    >
      <p>{texts.portalText}</p>
    </Row>
  )
}
