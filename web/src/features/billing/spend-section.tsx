import { lazy, Suspense } from 'react'
import type { Transaction } from '@/api/types'
import { Skeleton } from '@/ui/spinner'

const SpendChart = lazy(() => import('./spend-chart'))

/** The chart of what was spent, fetched while the transactions are; a block of its height until both are there. */
export function Spend({ transactions }: { transactions: readonly Transaction[] | undefined }) {
  return (
    <Suspense fallback={<Skeleton className="min-h-72 rounded-card" />}>
      <SpendChart transactions={transactions} />
    </Suspense>
  )
}
