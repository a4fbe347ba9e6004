import type { ReactNode } from 'react'
import type { OperatorOverview } from '@/api/types'
import { copy } from '@/copy/en'
import { StatusChip, type Tone } from '@/ui/badge'
import { countText, gigabytesText, usdText } from './model'
import { Ago, Quiet, Section } from './parts'

const texts = copy.operator.book

/** The ledger against itself, against the payment processor, and the object store against its record. */
export function Books({ overview }: { overview: OperatorOverview }) {
  const { ledger, clearing, volumes } = overview
  return (
    <Section id="books" hint={copy.operator.hints.books}>
      <ul className="card divide-y divide-line-1">
        <Ledger ledger={ledger} />
        <Book
          title={texts.clearing}
          tone={clearing.problems > 0 ? 'danger' : 'ready'}
          word={clearing.problems > 0 ? texts.differs : texts.agrees}
        >
          {texts.clearingText(
            countText(clearing.problems),
            countText(clearing.acknowledged),
            usdText(clearing.difference),
          )}
        </Book>
        <Book
          title={texts.volumes}
          tone={volumes.damaged_objects > 0 ? 'danger' : 'ready'}
          word={volumes.damaged_objects > 0 ? texts.damaged : texts.sound}
        >
          {texts.objects(volumes.damaged_objects)}, {texts.garbage(gigabytesText(volumes.garbage_bytes))}
        </Book>
      </ul>
    </Section>
  )
}

function Ledger({ ledger }: { ledger: OperatorOverview['ledger'] | undefined }) {
  if (!ledger) {
    return (
      <Book title={texts.ledger} tone="quiet" word={texts.never}>
        {texts.neverText}
      </Book>
    )
  }
  const { ok, late } = ledger
  return (
    <Book
      title={texts.ledger}
      tone={ok ? (late ? 'warn' : 'ready') : 'danger'}
      word={ok ? (late ? texts.late : texts.ok) : texts.wrong}
    >
      {texts.findings(texts.rows(ledger.problems), usdText(ledger.imbalance))}
      <Quiet>
        {texts.checked} <Ago at={ledger.checked_at} />
        {': '}
        {texts.size(countText(ledger.wallets), countText(ledger.segments), countText(ledger.transfers))}
      </Quiet>
    </Book>
  )
}

interface BookProps {
  title: string
  tone: Tone
  word: string
  children: ReactNode
}

function Book({ title, tone, word, children }: BookProps) {
  return (
    <li className="flex flex-wrap items-center gap-x-8 gap-y-2 px-5 py-4">
      <div className="min-w-0 flex-1 basis-60">
        <h3 className="font-medium text-body tracking-normal">{title}</h3>
        <div className="price mt-0.5 text-control">{children}</div>
      </div>
      <StatusChip tone={tone}>{word}</StatusChip>
    </li>
  )
}
