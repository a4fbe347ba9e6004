import { useNavigate, useSearch } from '@tanstack/react-router'
import { Download } from 'lucide-react'
import type { ReactNode } from 'react'
import type { Transaction } from '@/api/types'
import { copy } from '@/copy/en'
import { useSession, useTeam } from '@/features/session/queries'
import { Dot } from '@/ui/badge'
import { Button } from '@/ui/button'
import { EmptyState } from '@/ui/empty-state'
import { Skeleton } from '@/ui/spinner'
import { Tabs } from '@/ui/tabs'
import { groupByVolume, type HistoryTab, historyTabs, rowsOf } from './model'
import { TransactionTable } from './transaction-table'
import { VolumeGroups } from './volume-groups'

interface HistoryProps {
  transactions: readonly Transaction[] | null
  loading: boolean
  /** What stands in the rows' place when they could not be read. */
  error: ReactNode
  activePods: readonly string[]
  activeVolumes: readonly string[]
}

/** Where the money came from and where it went. */
export function TransactionHistory(props: HistoryProps) {
  const navigate = useNavigate()
  const search = useSearch({ from: '/shell/billing' })
  const tab = historyTabs.find((each) => each === search.tab) ?? 'credits'
  return (
    <section>
      <div className="mb-2 flex flex-wrap items-center gap-x-5 gap-y-2">
        <h2 className="flex-1 font-semibold text-card">{copy.billing.history}</h2>
        <Export transactions={props.transactions ?? []} />
      </div>
      <Tabs
        label={copy.billing.history}
        value={tab}
        tabs={historyTabs.map((value) => ({ value, label: copy.billing.tabs[value] }))}
        onChange={(next) =>
          void navigate({
            to: '/billing',
            search: { ...search, tab: next },
            replace: true,
            resetScroll: false,
          })
        }
      >
        {tab === 'credits' ? null : <Legend />}
        <Panel tab={tab} {...props} />
      </Tabs>
    </section>
  )
}

/** Hands out all rows that were read, of every tab, as one file. */
function Export({ transactions }: { transactions: readonly Transaction[] }) {
  const { team } = useTeam()
  const signedIn = useSession().status === 'in'
  const reason = signedIn ? copy.billing.nothingToExport : copy.billing.signInToExport
  const disabled = transactions.length === 0
  const save = async () => {
    const { saveTransactions } = await import('./csv')
    saveTransactions(team?.id ?? '', transactions)
  }
  return (
    <Button
      size="small"
      disabled={disabled}
      title={disabled ? reason : undefined}
      icon={<Download size={14} aria-hidden="true" />}
      onClick={() => void save()}
    >
      {copy.billing.export}
    </Button>
  )
}

function Panel({
  tab,
  transactions,
  loading,
  error,
  activePods,
  activeVolumes,
}: HistoryProps & { tab: HistoryTab }) {
  const signedIn = useSession().status === 'in'
  if (loading) return <Skeleton className="h-48 rounded-card" />
  if (!transactions && signedIn) return error
  const rows = rowsOf(transactions ?? [], tab)
  if (rows.length === 0) {
    const [title, hint] = copy.billing.empty[tab]
    return <EmptyState title={title} hint={hint} />
  }
  if (tab === 'storage') return <VolumeGroups groups={groupByVolume(rows)} activeVolumes={activeVolumes} />
  return (
    <TransactionTable
      key={tab}
      label={copy.billing.tabs[tab]}
      rows={rows}
      activePods={tab === 'pods' ? activePods : []}
    />
  )
}

function Legend() {
  return (
    <ul className="mb-4 flex gap-5 text-low text-meta">
      <li className="flex items-center gap-1.5">
        <Dot tone="ready" />
        {copy.billing.activePod}
      </li>
      <li className="flex items-center gap-1.5">
        <Dot tone="tide" />
        {copy.billing.activeVolume}
      </li>
    </ul>
  )
}
