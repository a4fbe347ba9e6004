import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { call } from '@/api/client'
import { detailOf } from '@/api/error'
import { copy } from '@/copy/en'
import { transactionsQuery } from '@/features/wallet/queries'
import { onceKeys } from '@/lib/once'
import { asRecord, readStored, writeStored } from '@/lib/storage'
import { alertToast } from '@/ui/toast'
import { newestCredit } from './model'

interface CreditOrder {
  teamId: string
  amount: number
  /** Whether the team keeps the card for automatic top-ups. */
  saveCard: boolean
}

/** Starts a top-up and leaves for the payment page. */
export function useCreditCheckout() {
  const client = useQueryClient()
  const [keys] = useState(onceKeys)
  return useMutation({
    mutationFn: async ({ teamId, amount, saveCard }: CreditOrder) =>
      call(
        'post',
        '/wallet/credit/checkout',
        { query: { team_id: teamId }, body: saveCard ? { amount, save_card: true } : { amount } },
        { key: keys.of({ teamId, amount, saveCard }) },
      ),
    onSuccess: async ({ checkout_url }, { teamId }) => {
      keys.forget()
      const rows = await client.ensureQueryData(transactionsQuery(teamId)).catch(() => null)
      writeStored(leaving, { team: teamId, credit: rows ? newestCredit(rows) : null })
      location.assign(checkout_url)
    },
    onError: (error) => alertToast(detailOf(error, copy.billing.payFailed)),
  })
}

const leaving = 'checkout'

/** The team's newest credit when its reader left for the payment page, '' for none; null when that is not known. */
export function creditOnLeaving(teamId: string): string | null {
  const stored = asRecord(readStored(leaving))
  return stored?.team === teamId && typeof stored.credit === 'string' ? stored.credit : null
}
