import { queryOptions, useMutation } from '@tanstack/react-query'
import { call, readFile } from '@/api/client'
import { detailOf } from '@/api/error'
import { copy } from '@/copy/en'
import { downloadFile } from '@/lib/download'
import { monthDays } from '@/lib/month'
import { alertToast } from '@/ui/toast'

/** The months of a team's wallet, newest first. */
export const statementsQuery = (teamId: string) =>
  queryOptions({
    queryKey: ['statements', teamId],
    queryFn: async () => call('get', '/wallet/statements', { query: { team_id: teamId } }),
    staleTime: 5 * 60_000,
  })

/** What a month's spend is told by. */
export type SpendBy = 'pod' | 'member' | 'volume' | 'day'

/** What was spent in a month, by pod, member, volume or day. */
export const spendQuery = (teamId: string, month: string, by: SpendBy) =>
  queryOptions({
    queryKey: ['spend', teamId, month, by],
    queryFn: async () =>
      call('get', '/wallet/spend', { query: { team_id: teamId, by, ...monthDays(month) } }),
    staleTime: 60_000,
  })

/** Reads a month's statement and hands it to the reader. */
export function useStatementFile(teamId: string) {
  return useMutation({
    mutationFn: async (file: string) => {
      const made = await readFile('/wallet/statements/{file}', { path: { file }, query: { team_id: teamId } })
      downloadFile(`homeport-statement-${file}`, made)
    },
    onError: (error) => alertToast(detailOf(error, copy.statements.downloadFailed)),
  })
}
