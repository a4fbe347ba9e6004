import { clsx } from 'clsx'
import type { OperatorProvider } from '@/api/types'
import { copy } from '@/copy/en'
import { formatRate } from '@/lib/money'
import { nameOf } from '@/lib/names'
import { Dot, StatusChip } from '@/ui/badge'
import { countText, healthTones, hoursText, offersOnSale, scoreTone, usdText } from './model'
import { Ago, Nothing, Quiet, Section, Words } from './parts'
import { type Column, TableOrCards } from './table'

const texts = copy.operator.cloud
const { heads } = texts

const columns: readonly Column<OperatorProvider>[] = [
  {
    header: heads.cloud,
    width: 'w-[13%]',
    cell: ({ provider }) => (
      <span className="wrap-anywhere font-medium text-body text-hi">{nameOf(provider)}</span>
    ),
  },
  { header: heads.state, width: 'w-[19%]', cell: (provider) => <State provider={provider} /> },
  { header: heads.offers, width: 'w-[16%]', cell: (provider) => <Catalogue provider={provider} /> },
  { header: heads.score, width: 'w-[16%]', cell: (provider) => <Score provider={provider} /> },
  { header: heads.machines, width: 'w-[12%]', cell: (provider) => <Machines provider={provider} /> },
  {
    header: heads.burn,
    width: 'w-[11%]',
    right: true,
    cell: ({ burn_per_hour: burn }) => <span className={burn > 0 ? 'text-hi' : ''}>{formatRate(burn)}</span>,
  },
  {
    header: heads.balance,
    width: 'w-[13%]',
    right: true,
    cell: (provider) => <Balance provider={provider} />,
  },
]

/** Each cloud account: whether it sells, how it does, what it costs and how long its money lasts. */
export function Clouds({ providers }: { providers: readonly OperatorProvider[] }) {
  return (
    <Section id="clouds" hint={copy.operator.hints.clouds}>
      {providers.length === 0 ? (
        <Nothing texts={[texts.none]} />
      ) : (
        <TableOrCards
          label={copy.operator.sections.clouds}
          wide="(min-width: 1240px)"
          columns={columns}
          rows={providers}
          rowKey={({ provider }) => provider}
          note={({ trouble }) => (trouble ? <Words>{trouble}</Words> : null)}
        />
      )}
    </Section>
  )
}

function State({ provider: { health, breaker } }: { provider: OperatorProvider }) {
  return (
    <>
      <StatusChip tone={healthTones[health]}>{texts.health[health]}</StatusChip>
      <Quiet className="mt-1.5">
        {texts[breaker.state]}
        {breaker.opened_at ? (
          <>
            {' '}
            {texts.since} <Ago at={breaker.opened_at} />
          </>
        ) : null}
      </Quiet>
      {breaker.probe_at ? (
        <Quiet>
          {texts.nextTrial} <Ago at={breaker.probe_at} />
        </Quiet>
      ) : null}
    </>
  )
}

function Catalogue({ provider }: { provider: OperatorProvider }) {
  const { offers, listed_at: listed } = provider
  const onSale = offersOnSale(provider)
  return (
    <>
      <div className={clsx('price', onSale > 0 && 'text-hi')}>{texts.offers(onSale, countText(onSale))}</div>
      {offers > onSale ? <Quiet>{texts.hidden(countText(offers))}</Quiet> : null}
      <Quiet>
        {listed ? (
          <>
            {texts.listed} <Ago at={listed} />
          </>
        ) : (
          texts.neverListed
        )}
      </Quiet>
    </>
  )
}

const outcomes = ['ready', 'slow', 'failed', 'bad_host', 'lost'] as const

function Score({ provider: { score, machines } }: { provider: OperatorProvider }) {
  const counted = outcomes.filter((each) => machines[each] > 0)
  return (
    <>
      <div className="price flex items-center gap-2 text-hi">
        <Dot tone={counted.length === 0 ? 'quiet' : scoreTone(score)} />
        {score}
      </div>
      <Quiet>
        {counted.length === 0
          ? texts.noOutcomes
          : counted.map((each) => `${countText(machines[each])} ${texts.outcomes[each]}`).join(', ')}
      </Quiet>
    </>
  )
}

const states = ['running', 'intent', 'ambiguous', 'terminating'] as const

function Machines({ provider: { instances, orphans } }: { provider: OperatorProvider }) {
  const open = states.filter((state) => instances[state] > 0)
  if (open.length === 0 && orphans === 0) return <span className="text-low">{texts.noMachines}</span>
  return (
    <ul className="price">
      {open.map((state) => (
        <li key={state}>
          <span className="text-hi">{countText(instances[state])}</span> {texts.states[state]}
        </li>
      ))}
      {orphans > 0 ? (
        <li className="font-medium text-danger">
          {countText(orphans)} {texts.orphans}
        </li>
      ) : null}
    </ul>
  )
}

function Balance({ provider: { balance, balance_by_api: byApi } }: { provider: OperatorProvider }) {
  if (!balance?.read_at) {
    return <span className="text-low text-meta">{byApi ? texts.notRead : texts.notGiven}</span>
  }
  const { amount, hours_left: hours, low, read_at: readAt } = balance
  return (
    <>
      <div className={low ? 'font-medium text-danger' : 'text-hi'}>{usdText(amount)}</div>
      <Quiet className={low ? 'text-danger' : ''}>
        {hours === undefined ? texts.noBurn : texts.lasts(hoursText(hours))}
      </Quiet>
      <Quiet>
        {texts.readAt} <Ago at={readAt} />
      </Quiet>
    </>
  )
}
