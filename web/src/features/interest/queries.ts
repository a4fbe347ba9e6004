import { queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { api, body, done } from '@/api/client'
import { loadConfig } from '@/api/config'
import type { Product } from '@/api/types'
import { useTeam } from '@/features/session/queries'

/** Whether a team waits for a product. */
const interestQuery = (teamId: string, product: Product) =>
  queryOptions({
    queryKey: ['interest', teamId, product],
    queryFn: async () =>
      body(
        (await api()).GET('/product-interest', {
          baseUrl: await interestBase(),
          params: { query: { team_id: teamId, product } },
        }),
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
      done(
        (await api()).POST('/product-interest', {
          baseUrl: await interestBase(),
          body: { team_id: teamId, product, interested: true },
        }),
      ),
    onSuccess: () => client.setQueryData(interestQuery(teamId, product).queryKey, { interested: true }),
  })
}

/** This path begins with /api wherever the API lives. */
async function interestBase(): Promise<string> {
  const { apiBase } = await loadConfig()
  return apiBase.endsWith('/api') ? apiBase : `${apiBase}/api`
}
