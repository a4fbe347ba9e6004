import { lazy, Suspense } from 'react'
import type { Transaction } from '@/api/types'
import { Skeleton } from '@/ui/spinner'

const SpendChart = lazy(() => import('./spend-chart'))

/** The chart of what was spent; a block of its height until it is there. */
export function Spend({ transactions }: { transactions: readonly Transaction[] | undefined }) {
  const waiting = <Skeleton className="min-h-72 rounded-card" />
  return transactions ? (
    <Suspense fallback={waiting}>
      <SpendChart transactions={transactions} />
    </Suspense>
  ) : (
    waiting
  )
}
