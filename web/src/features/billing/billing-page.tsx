import { RefreshCw } from 'lucide-react'
import { lazy, Suspense, useState } from 'react'
import { reasonOf } from '@/api/error'
import { copy } from '@/copy/en'
import { usePods } from '@/features/pods/queries'
import { useSession, useTeam } from '@/features/session/queries'
import { useVolumes } from '@/features/volumes/queries'
import { useBalance, useTransactions } from '@/features/wallet/queries'
import { Button } from '@/ui/button'
import { ButtonLink, TextLink } from '@/ui/button-link'
import { ListError } from '@/ui/list-error'
import { Notice } from '@/ui/notice'
import { Page } from '@/ui/page'
import { AddCredit } from './add-credit'
import { BalanceCard } from './balance-card'
import { phaseOf } from './model'
import { Spend } from './spend-section'
import { TransactionHistory } from './transaction-history'
import { useReturn } from './use-return'

// It is the last of the page, below the fold: nothing moves when it comes.
const Account = lazy(() => import('./account'))

/** The team's wallet: what is in it, how to fill it, where it went. */
export function BillingPage() {
  const signedIn = useSession().status === 'in'
  const { team } = useTeam()
  const balance = useBalance()
  const transactions = useTransactions()
  const pods = usePods()
  const volumes = useVolumes()
  const { switching, message } = useReturn()
  const [refreshing, setRefreshing] = useState(false)
  const loads = [balance, transactions, pods, volumes]
  const firstLoad = signedIn && loads.some((load) => phaseOf(load) === 'first')
  const refresh = () => {
    if (!team) return
    setRefreshing(true)
    void Promise.all(loads.map((load) => load.refetch())).finally(() => setRefreshing(false))
  }
  const historyError =
    signedIn && phaseOf(transactions) === 'failed' ? (
      <ListError
        text={copy.wallet.transactionsFailed}
        detail={reasonOf(transactions.error)}
        busy={refreshing}
        onRetry={refresh}
      />
    ) : null
  return (
    <Page
      title={copy.billing.title}
      subtitle={signedIn ? copy.billing.subtitle : copy.billing.subtitleVisitor}
      refreshing={loads.some((load) => load.isFetching && !load.isPending)}
      actions={
        <>
          {signedIn ? (
            <ButtonLink to="/billing" hash="plan" kind="ghost" className="max-sm:order-last">
              {copy.billing.plan}
            </ButtonLink>
          ) : null}
          <Button
            busy={refreshing || firstLoad}
            disabled={!signedIn}
            title={signedIn ? undefined : copy.billing.signInToRefresh}
            icon={<RefreshCw size={14} aria-hidden="true" />}
            onClick={refresh}
          >
            {copy.billing.refresh}
          </Button>
        </>
      }
    >
      {switching ? <Notice tone="info">{copy.billing.switching}</Notice> : null}
      {message ? (
        <Notice tone={message.tone}>
          {message.text}{' '}
          {message.link ? <TextLink to={message.link.to}>{message.link.label}</TextLink> : null}
        </Notice>
      ) : null}
      {signedIn && phaseOf(balance) === 'failed' ? (
        <ListError
          text={copy.wallet.balanceFailed}
          detail={reasonOf(balance.error)}
          busy={refreshing}
          onRetry={refresh}
        />
      ) : null}
      {transactions.data ? historyError : null}
      <div className="grid grid-cols-1 gap-4 lg:grid-cols-[5fr_7fr]">
        <BalanceCard
          balance={balance.data ?? null}
          loading={signedIn && phaseOf(balance) === 'first'}
          fetchedAt={balance.dataUpdatedAt}
        />
        <AddCredit />
      </div>
      {signedIn && !(historyError && !transactions.data) ? <Spend transactions={transactions.data} /> : null}
      <TransactionHistory
        transactions={transactions.data ?? null}
        loading={signedIn && phaseOf(transactions) === 'first'}
        error={historyError}
        activePods={(pods.data ?? []).filter((pod) => pod.status !== 'deleted').map((pod) => pod.id)}
        activeVolumes={(volumes.data ?? []).map((volume) => volume.id)}
      />
      {signedIn && team ? (
        <Suspense>
          <Account key={team.id} team={team} />
        </Suspense>
      ) : null}
    </Page>
  )
}
