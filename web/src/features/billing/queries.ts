import { queryOptions, useMutation, useQueryClient } from '@tanstack/react-query'
import { call, readFile } from '@/api/client'
import { detailOf } from '@/api/error'
import { copy } from '@/copy/en'
import { transactionsQuery } from '@/features/wallet/queries'
import { downloadFile } from '@/lib/download'
import { asRecord, readStored, writeStored } from '@/lib/storage'
import { alertToast } from '@/ui/toast'
import { newestCredit } from './model'

/** Starts a top-up and leaves for the payment page. */
export function useCreditCheckout() {
  const client = useQueryClient()
  return useMutation({
    mutationFn: async ({ teamId, amount }: { teamId: string; amount: number }) =>
      call('post', '/wallet/credit/checkout', {
        query: { team_id: teamId },
        body: { amount },
      }),
    onSuccess: async ({ checkout_url }, { teamId }) => {
      const rows = await client.ensureQueryData(transactionsQuery(teamId)).catch(() => null)
      writeStored(leaving, { team: teamId, credit: rows ? newestCredit(rows) : null })
      location.assign(checkout_url)
    },
    onError: (error) => alertToast(detailOf(error, copy.billing.payFailed)),
  })
}

/** The months of a team's wallet, newest first. */
export const statementsQuery = (teamId: string) =>
  queryOptions({
    queryKey: ['statements', teamId],
    queryFn: async () => call('get', '/wallet/statements', { query: { team_id: teamId } }),
    staleTime: 5 * 60_000,
  })

/** Reads a month's statement and hands it to the reader. */
export function useStatementFile(teamId: string) {
  return useMutation({
    mutationFn: async (file: string) => {
      const made = await readFile('/wallet/statements/{file}', { path: { file }, query: { team_id: teamId } })
      downloadFile(`homeport-statement-${file}`, made)
    },
    onError: (error) => alertToast(detailOf(error, copy.billing.statements.downloadFailed)),
  })
}

const leaving = 'checkout'

/** The team's newest credit when its reader left for the payment page, '' for none; null when that is not known. */
export function creditOnLeaving(teamId: string): string | null {
  const stored = asRecord(readStored(leaving))
  return stored?.team === teamId && typeof stored.credit === 'string' ? stored.credit : null
}
