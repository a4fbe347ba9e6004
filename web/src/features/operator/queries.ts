import { queryOptions } from '@tanstack/react-query'
import { call } from '@/api/client'

const overviewEvery = 30_000
const marginsEvery = 60_000

/** How the clouds, machines, jobs and books do. Read again while the page is seen, and when it is seen again. */
export const overviewQuery = () =>
  queryOptions({
    queryKey: ['operator', 'overview'],
    queryFn: async () => call('get', '/operator/overview', {}),
    staleTime: overviewEvery / 2,
    refetchInterval: overviewEvery,
    refetchOnWindowFocus: true,
  })

/** What users paid against what the clouds charged. The server makes them once a minute. */
export const marginsQuery = (days: number) =>
  queryOptions({
    queryKey: ['operator', 'margins', days],
    queryFn: async () => call('get', '/operator/margins', { query: { days } }),
    staleTime: marginsEvery / 2,
    refetchInterval: marginsEvery,
    refetchOnWindowFocus: true,
  })
