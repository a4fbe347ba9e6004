import type { WalletView } from '@/features/wallet/model'
import { formatUsd } from '@/lib/money'
import { Skeleton } from '@/ui/spinner'

/** The balance; a block while it is being read, a dash when it cannot be: a false '$0.00' would frighten. */
export function WalletAmount({ view }: { view: WalletView }) {
  if (view.kind === 'loading') return <Skeleton className="h-7 w-16" />
  if (view.kind === 'failed') return '—'
  return formatUsd(view.kind === 'known' ? view.balance : 0)
}
