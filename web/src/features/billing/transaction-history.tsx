import { useNavigate, useSearch } from '@tanstack/react-router'
import type { Transaction } from '@/api/types'
import { copy } from '@/copy/en'
import { useSession } from '@/features/session/queries'
import { Dot } from '@/ui/badge'
import { EmptyState } from '@/ui/empty-state'
import { Skeleton } from '@/ui/spinner'
import { Tabs } from '@/ui/tabs'
import { groupByVolume, type HistoryTab, historyTabs, rowsOf } from './model'
import { TransactionTable } from './transaction-table'
import { VolumeGroups } from './volume-groups'

interface HistoryProps {
  transactions: readonly Transaction[] | null
  loading: boolean
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
      <h2 className="mb-2 font-semibold text-card">{copy.billing.history}</h2>
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

function Panel({
  tab,
  transactions,
  loading,
  activePods,
  activeVolumes,
}: HistoryProps & { tab: HistoryTab }) {
  const signedIn = useSession().status === 'in'
  if (loading) return <Skeleton className="h-48 rounded-card" />
  const rows = rowsOf(transactions ?? [], tab)
  if (rows.length === 0 && (transactions || !signedIn)) {
    const [title, hint] = copy.billing.empty[tab]
    return <EmptyState title={title} hint={hint} />
  }
  if (tab === 'storage') return <VolumeGroups groups={groupByVolume(rows)} activeVolumes={activeVolumes} />
  return (
    <TransactionTable
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
