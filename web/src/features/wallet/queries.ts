import { queryOptions, useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import { call } from '@/api/client'
import { useTeam } from '@/features/session/queries'
import { readStored, writeStored } from '@/lib/storage'
import { balanceOf, freshFor, snapshotOf, type WalletView, walletView } from './model'

const refreshEvery = 30_000
const transactionLimit = 1000

// Keys of what else changes with a team's money, here because every page has this module: importing them
// splits no chunk.

/** What a team is told about its money. */
export const noticesKey = (teamId: string) => ['notices', teamId] as const

/** What a team agreed on about automatic top-ups, and its card. */
export const autoTopUpKey = (teamId: string) => ['auto-topup', teamId] as const

/** The live balance of a team's wallet; a snapshot younger than five minutes stands in until it is there. */
export const balanceQuery = (teamId: string) =>
  queryOptions({
    queryKey: ['wallet-balance', teamId],
    queryFn: async () =>
      call('get', '/wallet/balance', {
        query: { team_id: teamId, include_estimates: true },
      }),
    staleTime: freshFor,
    refetchInterval: refreshEvery,
    refetchOnWindowFocus: true,
    initialData: () => balanceOf(readStored(snapshotKey(teamId)), Date.now()),
    // Shown at once, and asked for anew at once.
    initialDataUpdatedAt: 0,
  })

/** The newest transactions of a team's wallet. */
export const transactionsQuery = (teamId: string) =>
  queryOptions({
    queryKey: ['wallet-transactions', teamId],
    queryFn: async () =>
      call('get', '/wallet/transactions', {
        query: { team_id: teamId, limit: transactionLimit },
      }),
    staleTime: freshFor,
  })

/** The balance of the team on stage. */
export function useBalance() {
  const { team } = useTeam()
  const query = useQuery({ ...balanceQuery(team?.id ?? ''), enabled: team !== null })
  const { data, dataUpdatedAt } = query
  useEffect(() => {
    if (team && data && dataUpdatedAt > 0) writeStored(snapshotKey(team.id), snapshotOf(data, dataUpdatedAt))
  }, [team, data, dataUpdatedAt])
  return query
}

/** What the shell shows of the wallet of the team on stage. */
export function useWalletView(): WalletView {
  const { status } = useTeam()
  const { data, errorUpdateCount } = useBalance()
  return walletView({ team: status, data, failures: errorUpdateCount })
}

/** The transactions of the team on stage. */
export function useTransactions() {
  const { team } = useTeam()
  return useQuery({ ...transactionsQuery(team?.id ?? ''), enabled: team !== null })
}

/** Loads balance and transactions of the team on stage anew. */
export function useRefreshWallet(): () => Promise<unknown> {
  const client = useQueryClient()
  const { team } = useTeam()
  return async () => {
    if (!team) return
    await Promise.all([
      client.refetchQueries({ queryKey: balanceQuery(team.id).queryKey }),
      client.refetchQueries({ queryKey: transactionsQuery(team.id).queryKey, type: 'active' }),
    ])
  }
}

const snapshotKey = (teamId: string) => `wallet:${teamId}`
