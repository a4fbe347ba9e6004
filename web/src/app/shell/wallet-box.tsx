import { clsx } from 'clsx'
import { RefreshCw } from 'lucide-react'
import { useState } from 'react'
import { copy } from '@/copy/en'
import { useSession } from '@/features/session/queries'
import type { WalletView } from '@/features/wallet/model'
import { useBalance, useRefreshWallet, useWalletView } from '@/features/wallet/queries'
import { formatRate } from '@/lib/money'
import { formatTimeLeft } from '@/lib/time'
import { ButtonLink } from '@/ui/button-link'
import { WalletAmount } from './wallet-amount'

/** Balance, what is being spent, and how long it lasts. */
export function WalletBox() {
  const signedIn = useSession().status === 'in'
  const view = useWalletView()
  return (
    <section aria-label={copy.wallet.title} className="card p-3.5">
      <div className="flex items-center justify-between gap-2">
        <h2 className="font-normal text-low text-meta tracking-normal">{copy.wallet.title}</h2>
        <RefreshButton signedIn={signedIn} />
      </div>
      <div className="price truncate font-semibold text-hi text-title">
        <WalletAmount view={view} />
      </div>
      {signedIn ? <Spending view={view} /> : null}
      <ButtonLink button to="/billing" size="small" wide className="mt-3">
        {copy.wallet.addFunds}
      </ButtonLink>
    </section>
  )
}

function RefreshButton({ signedIn }: { signedIn: boolean }) {
  const { isFetching } = useBalance()
  const refresh = useRefreshWallet()
  const [asked, setAsked] = useState(false)
  const turning = asked && isFetching
  const title = signedIn ? copy.wallet.refresh : copy.wallet.signInToRefresh
  return (
    <button
      type="button"
      title={title}
      aria-label={title}
      disabled={!signedIn}
      // Not disabled while it turns: a disabled button would lose the focus of the keyboard.
      aria-busy={turning}
      onClick={() => {
        if (turning) return
        setAsked(true)
        void refresh().finally(() => setAsked(false))
      }}
      className="-my-1 -mr-1.5 inline-grid size-7 place-items-center rounded-control text-low transition-colors enabled:hover:bg-ink-3 enabled:hover:text-hi disabled:opacity-55 pointer-coarse:size-11"
    >
      <RefreshCw size={14} aria-hidden="true" className={clsx(turning && 'animate-spin')} />
    </button>
  )
}

/** Always two lines high: the box stands at the bottom, and what is above must not jump. */
function Spending({ view }: { view: WalletView }) {
  const left = view.kind === 'known' ? formatTimeLeft(view.balance, view.rate) : null
  return (
    <div className="price mt-0.5 min-h-8 text-meta">
      {view.kind === 'loading' ? <p>{copy.wallet.calculating}</p> : null}
      {view.kind === 'failed' ? (
        <p role="alert" className="text-danger">
          {copy.wallet.balanceFailed}
        </p>
      ) : null}
      {view.kind === 'known' ? <p>{copy.wallet.spending(formatRate(view.rate))}</p> : null}
      {left ? <p className="text-low">{left}</p> : null}
    </div>
  )
}
