import { mutationOptions, type QueryClient, type QueryKey } from '@tanstack/react-query'

/**
 * A deletion that takes its row out of a list at once. When the call fails that row alone comes back, at its
 * place (lists are sorted as they are read). The list is read again once no other deletion of it is under way.
 */
export function removal<Row extends { id: string }>(
  client: QueryClient,
  queryKey: QueryKey,
  remove: (row: Row) => Promise<void>,
  failed: (error: Error) => void,
) {
  const mutationKey = ['remove', ...queryKey]
  const without = (rows: readonly Row[] | undefined, gone: Row) =>
    (rows ?? []).filter((row) => row.id !== gone.id)
  return mutationOptions({
    mutationKey,
    mutationFn: remove,
    onMutate: async (row: Row) => {
      await client.cancelQueries({ queryKey })
      client.setQueryData<Row[]>(queryKey, (old) => without(old, row))
    },
    onError: (error, row) => {
      failed(error)
      client.setQueryData<Row[]>(queryKey, (old) => [...without(old, row), row])
    },
    onSettled: () => settled(client, mutationKey, queryKey),
  })
}

/** Reads a list again unless another mutation of the same kind is still under way. */
export function settled(
  client: QueryClient,
  mutationKey: QueryKey,
  queryKey: QueryKey,
): Promise<void> | undefined {
  return client.isMutating({ mutationKey }) > 1 ? undefined : client.invalidateQueries({ queryKey })
}
