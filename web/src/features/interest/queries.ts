import { queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { call } from '@/api/client'
import { loadConfig } from '@/api/config'
import type { Product } from '@/api/types'
import { useTeam } from '@/features/session/queries'

/** Whether a team waits for a product. */
const interestQuery = (teamId: string, product: Product) =>
  queryOptions({
    queryKey: ['interest', teamId, product],
    queryFn: async () =>
      call(
        'get',
        '/product-interest',
        { query: { team_id: teamId, product } },
        { base: await interestBase() },
      ),
    staleTime: Number.POSITIVE_INFINITY,
    // Asked once per visit of the page, and a failure is shown to nobody.
    gcTime: 0,
    retry: false,
  })

export function useInterest(product: Product) {
  const { team } = useTeam()
  return useQuery({ ...interestQuery(team?.id ?? '', product), enabled: team !== null })
}

/** Says that a team waits for a product. */
export function useExpressInterest(teamId: string, product: Product) {
  const client = useQueryClient()
  return useMutation({
    mutationFn: async () =>
      call(
        'post',
        '/product-interest',
        { body: { team_id: teamId, product, interested: true } },
        { base: await interestBase() },
      ),
    onSuccess: (answer) => client.setQueryData(interestQuery(teamId, product).queryKey, answer),
  })
}

/** This path begins with /api wherever the API lives. */
async function interestBase(): Promise<string> {
  const { apiBase } = await loadConfig()
  return apiBase.endsWith('/api') ? apiBase : `${apiBase}/api`
}
