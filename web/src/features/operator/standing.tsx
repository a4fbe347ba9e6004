import { CircleAlert } from 'lucide-react'
import type { OperatorOverview } from '@/api/types'
import { copy } from '@/copy/en'
import { Badge } from '@/ui/badge'
import { Notice } from '@/ui/notice'
import type { Alert } from './alerts'

const texts = copy.operator

/** The first that an operator reads: that all is well, or what is not and where to look. */
export function Standing({ overview, alerts }: { overview: OperatorOverview; alerts: readonly Alert[] }) {
  if (alerts.length === 0) return <AllWell overview={overview} />
  return (
    <section aria-label={texts.hands(alerts.length)} className="card border-danger/35">
      <div role="status" className="flex items-center gap-3 border-line-1 border-b px-5 py-3.5">
        <CircleAlert size={16} aria-hidden="true" className="shrink-0 text-danger" />
        <h2 className="font-medium text-lead tracking-normal">{texts.hands(alerts.length)}</h2>
      </div>
      <ul className="divide-y divide-line-1">
        {alerts.map((alert) => (
          <li
            key={`${alert.section} ${alert.text}`}
            className="flex flex-wrap items-baseline gap-x-4 gap-y-1.5 px-5 py-3"
          >
            <Badge tone={alert.urgent ? 'danger' : 'warn'} className="w-12 justify-center">
              {alert.urgent ? texts.urgent : texts.soon}
            </Badge>
            <div className="min-w-0 flex-1 basis-60">
              <p className="font-medium text-body text-hi">{alert.text}</p>
              {alert.detail ? <p className="wrap-anywhere text-control">{alert.detail}</p> : null}
            </div>
            <a
              href={`#${alert.section}`}
              className="inline-flex min-h-6 items-center rounded-badge text-control text-hi underline decoration-line-3 underline-offset-3 hover:decoration-beacon pointer-coarse:min-h-11"
            >
              {texts.see(texts.sections[alert.section])}
            </a>
          </li>
        ))}
      </ul>
    </section>
  )
}

function AllWell({ overview: { providers, instances, ledger } }: { overview: OperatorOverview }) {
  const { intent, ambiguous, running, terminating } = instances.open
  const detail = texts.wellDetail(
    texts.clouds(providers.filter(({ sells }) => sells).length),
    texts.machines(intent + ambiguous + running + terminating),
    texts.pods(instances.pods),
    ledger ? texts.booksAddUp : texts.booksUnchecked,
  )
  return (
    <Notice tone="success" detail={detail}>
      <h2 className="font-medium text-lead tracking-normal">{texts.well}</h2>
    </Notice>
  )
}
