import { clsx } from 'clsx'
import { RefreshCw } from 'lucide-react'
import { useState } from 'react'
import { copy } from '@/copy/en'
import { useSession } from '@/features/session/queries'
import { useBalance, useRefreshWallet } from '@/features/wallet/queries'
import { formatRate, formatUsd } from '@/lib/money'
import { formatTimeLeft } from '@/lib/time'
import { ButtonLink } from '@/ui/button-link'

/** Balance, what is being spent, and how long it lasts. */
export function WalletBox() {
  const signedIn = useSession().status === 'in'
  const { data, isFetching, isPending } = useBalance()
  const refresh = useRefreshWallet()
  const [asked, setAsked] = useState(false)
  const turning = asked && isFetching
  const title = signedIn ? copy.wallet.refresh : copy.wallet.signInToRefresh
  return (
    <section aria-label={copy.wallet.title} className="card p-3.5">
      <div className="flex items-center justify-between gap-2">
        <h2 className="font-normal text-low text-meta tracking-normal">{copy.wallet.title}</h2>
        <button
          type="button"
          title={title}
          aria-label={title}
          disabled={!signedIn || turning}
          onClick={() => {
            setAsked(true)
            void refresh().finally(() => setAsked(false))
          }}
          className="-my-1 -mr-1.5 inline-grid size-7 place-items-center rounded-control text-low transition-colors enabled:hover:bg-ink-3 enabled:hover:text-hi disabled:opacity-55 pointer-coarse:size-11"
        >
          <RefreshCw size={14} aria-hidden="true" className={clsx(turning && 'animate-spin')} />
        </button>
      </div>
      <p className="price font-semibold text-hi text-title">{formatUsd(signedIn ? data?.balance : 0)}</p>
      {signedIn ? (
        <Spending
          pending={isPending}
          balance={data?.balance ?? 0}
          rate={data?.spending_per_hour ?? 0}
          known={data !== undefined}
        />
      ) : null}
      <ButtonLink button to="/billing" size="small" wide className="mt-3">
        {copy.wallet.addFunds}
      </ButtonLink>
    </section>
  )
}

function Spending({
  pending,
  known,
  balance,
  rate,
}: {
  pending: boolean
  known: boolean
  balance: number
  rate: number
}) {
  if (pending) return <p className="mt-0.5 text-meta">{copy.wallet.calculating}</p>
  if (!known) return null
  const left = formatTimeLeft(balance, rate)
  return (
    <div className="price mt-0.5 text-meta">
      <p>{copy.wallet.spending(formatRate(rate))}</p>
      {left ? <p className="text-low">{left}</p> : null}
    </div>
  )
}
