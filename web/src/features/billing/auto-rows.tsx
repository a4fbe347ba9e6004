import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { reasonOf } from '@/api/error'
import type { AutoTopUp, Card } from '@/api/types'
import { copy } from '@/copy/en'
import { formatUsd } from '@/lib/money'
import { formatDateTime } from '@/lib/time'
import { Badge, type Tone } from '@/ui/badge'
import { Button } from '@/ui/button'
import { ListError } from '@/ui/list-error'
import { openModal } from '@/ui/modal-store'
import { usePageRestored } from '@/ui/page-restored'
import { Skeleton } from '@/ui/spinner'
import { AutoDialog } from './auto-dialog'
import { brandOf, expiryOf, isExpired, needsLook } from './auto-model'
import { autoTopUpQuery, myCardQuery, useCardReturn, useRemoveCard, useSaveCard } from './auto-queries'
import { Row } from './row'

const texts = copy.topUp

const tones: Record<Exclude<AutoTopUp['state'], 'off'>, Tone> = {
  on: 'ready',
  charging: 'tide',
  retrying: 'danger',
  capped: 'warn',
  held: 'danger',
}

/** What the team's card pays by itself, and the card. */
export function AutoTopUpRows({ teamId }: { teamId: string }) {
  const { data: topUp, error, isFetching, refetch } = useQuery(autoTopUpQuery(teamId))
  const [open, setOpen] = useState(false)
  // Who saved a card came for what it is needed for.
  useCardReturn(teamId, (now) => setOpen(!now.enabled))
  if (!topUp) {
    return (
      <Row title={texts.title}>
        {error ? (
          <ListError
            text={texts.failed}
            detail={reasonOf(error)}
            busy={isFetching}
            onRetry={() => void refetch()}
          />
        ) : (
          <Skeleton className="h-5 w-64 max-w-full" />
        )}
      </Row>
    )
  }
  return (
    <>
      <TopUpRow topUp={topUp} onChange={topUp.card ? () => setOpen(true) : null} />
      <CardRow teamId={teamId} card={topUp.card ?? null} />
      {topUp.card ? (
        <AutoDialog
          teamId={teamId}
          topUp={topUp}
          card={topUp.card}
          open={open}
          onClose={() => setOpen(false)}
        />
      ) : null}
    </>
  )
}

function TopUpRow({ topUp, onChange }: { topUp: AutoTopUp; onChange: (() => void) | null }) {
  const { state } = topUp
  const news = newsOf(topUp)
  return (
    <Row
      title={texts.title}
      badge={state === 'off' ? null : <Badge tone={tones[state]}>{texts.badges[state]}</Badge>}
      actions={
        onChange ? (
          <Button size="small" onClick={onChange}>
            {topUp.enabled ? texts.change : texts.setUp}
          </Button>
        ) : null
      }
    >
      {topUp.enabled ? (
        <>
          <p className="price text-hi">{texts.on(formatUsd(topUp.amount), formatUsd(topUp.threshold))}</p>
          <p className="price text-low text-meta">
            {texts.month(formatUsd(topUp.month_charged), formatUsd(topUp.monthly_cap))}
          </p>
        </>
      ) : (
        <p>{texts.off}</p>
      )}
      {news ? <p className={needsLook(topUp) ? 'text-danger' : 'text-mid'}>{news}</p> : null}
    </Row>
  )
}

/** What is to be known beyond the agreement, with what to do next. */
function newsOf(topUp: AutoTopUp): string | null {
  const next = topUp.next_try_at ? formatDateTime(topUp.next_try_at) : texts.soon
  switch (topUp.state) {
    case 'off':
      return topUp.off_reason ? texts.offReasons[topUp.off_reason] : null
    case 'charging':
      return texts.charging
    case 'retrying':
      return texts.retrying(next)
    case 'capped':
      return texts.capped(next)
    case 'held':
      return texts.held
    default:
      return null
  }
}

function CardRow({ teamId, card }: { teamId: string; card: Card | null }) {
  const save = useSaveCard(teamId)
  usePageRestored(save.reset)
  const leaving = save.isPending || save.isSuccess
  if (!card) {
    return (
      <Row
        title={texts.card}
        actions={
          <Button size="small" busy={leaving} onClick={() => save.mutate()}>
            {texts.save}
          </Button>
        }
      >
        <p>{texts.noCard}</p>
      </Row>
    )
  }
  return (
    <Row
      title={texts.card}
      actions={
        <>
          <Button size="small" busy={leaving} aria-label={texts.replaceLabel} onClick={() => save.mutate()}>
            {texts.replace}
          </Button>
          <RemoveCard teamId={teamId} card={card} />
        </>
      }
    >
      <CardFacts card={card} />
    </Row>
  )
}

/** The card that the reader saved for a team of which they are no admin any more. Nothing to everybody else. */
export function MyCardRow({ teamId }: { teamId: string }) {
  const { data } = useQuery(myCardQuery(teamId))
  if (!data?.card) return null
  return (
    <Row title={texts.myCard} actions={<RemoveCard teamId={teamId} card={data.card} />}>
      <CardFacts card={data.card} />
      <p>{texts.myCardText}</p>
    </Row>
  )
}

function CardFacts({ card }: { card: Card }) {
  const expired = isExpired(card, new Date())
  return (
    <>
      <p className="price text-hi">{nameOfCard(card)}</p>
      <p className={expired ? 'text-danger' : 'text-low text-meta'}>
        {expired ? texts.expired(expiryOf(card)) : texts.expires(expiryOf(card))}
      </p>
    </>
  )
}

function RemoveCard({ teamId, card }: { teamId: string; card: Card }) {
  const { mutate, isPending } = useRemoveCard(teamId)
  const ask = () =>
    openModal({
      type: 'info',
      title: texts.removeTitle,
      message: texts.removeMessage(nameOfCard(card)),
      actions: [
        { label: copy.app.cancel },
        { label: texts.remove, variant: 'alarm', onClick: () => mutate() },
      ],
    })
  return (
    <Button size="small" kind="danger" busy={isPending} aria-label={texts.removeLabel} onClick={ask}>
      {texts.remove}
    </Button>
  )
}

function nameOfCard(card: Card): string {
  return texts.cardName(brandOf(card), card.last4)
}
