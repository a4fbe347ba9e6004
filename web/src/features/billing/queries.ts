import { useMutation } from '@tanstack/react-query'
import { call } from '@/api/client'
import { detailOf } from '@/api/error'
import { copy } from '@/copy/en'
import { alertToast } from '@/ui/toast'

/** Starts a top-up and leaves for the payment page. */
export function useCreditCheckout() {
  return useMutation({
    mutationFn: async ({ teamId, amount }: { teamId: string; amount: number }) =>
      call('post', '/wallet/credit/checkout', {
        query: { team_id: teamId },
        body: { amount },
      }),
    onSuccess: ({ checkout_url }) => location.assign(checkout_url),
    onError: (error) => alertToast(detailOf(error, copy.billing.payFailed)),
  })
}
