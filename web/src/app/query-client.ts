import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query'
import { retryRead } from '@/api/error'

/** The cache of everything the server said. */
export const queryClient = new QueryClient({
  queryCache: new QueryCache({
    onError: (error, query) => console.error('query failed', query.queryKey[0], error),
  }),
  mutationCache: new MutationCache({ onError: (error) => console.error('mutation failed', error) }),
  defaultOptions: {
    queries: {
      retry: retryRead,
      retryDelay: 300,
      gcTime: 30 * 60_000,
      refetchOnWindowFocus: false,
      // A request is tried, and its failure shown, also when the browser believes to be offline.
      networkMode: 'always',
    },
    mutations: { retry: false, networkMode: 'always' },
  },
})
