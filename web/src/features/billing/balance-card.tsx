import type { Balance } from '@/api/types'
import { copy } from '@/copy/en'
import { useSession } from '@/features/session/queries'
import { formatRate, formatUsd } from '@/lib/money'
import { formatDateTime, formatTimeLeft } from '@/lib/time'
import { Skeleton } from '@/ui/spinner'

interface BalanceCardProps {
  balance: Balance | null
  loading: boolean
  /** When it was read, in milliseconds; 0 when not yet. */
  fetchedAt: number
}

/** The balance of the wallet, large. */
export function BalanceCard({ balance, loading, fetchedAt }: BalanceCardProps) {
  return (
    <section className="card flex flex-col p-5">
      <h2 className="font-medium text-lead tracking-normal">{copy.billing.balance}</h2>
      <div className="mt-3 flex min-h-24 flex-1 flex-col">
        <Content balance={balance} loading={loading} fetchedAt={fetchedAt} />
      </div>
    </section>
  )
}

function Content({ balance, loading, fetchedAt }: BalanceCardProps) {
  const signedIn = useSession().status === 'in'
  if (loading) return <Skeleton className="h-11 w-48" />
  if (!signedIn) return <p className="price font-semibold text-display text-hi">{formatUsd(0)}</p>
  if (!balance) return <p>{copy.billing.noData}</p>
  const updated = balance.last_updated || (fetchedAt > 0 ? new Date(fetchedAt).toISOString() : '')
  const left = formatTimeLeft(balance.balance, balance.spending_per_hour)
  return (
    <>
      <p className="price font-semibold text-display text-hi">{formatUsd(balance.balance)}</p>
      <p className="price mt-2 text-control">
        {copy.wallet.spending(formatRate(balance.spending_per_hour))}
        {left ? <span className="text-low"> · {left}</span> : null}
      </p>
      {updated ? (
        <p className="text-low text-meta">
          {copy.billing.lastUpdated} <time dateTime={updated}>{formatDateTime(updated)}</time>
        </p>
      ) : null}
    </>
  )
}
