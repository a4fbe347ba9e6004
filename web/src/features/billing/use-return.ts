import { useQueryClient } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { copy } from '@/copy/en'
import { selectTeam, userInfoQuery, useSession, useTeam } from '@/features/session/queries'
import { balanceQuery, transactionsQuery } from '@/features/wallet/queries'
import { wait } from '@/lib/poll'
import { hasCreditSince } from './model'

/** What the page says about the way the reader came: from a payment, with a new team, or past a limit. */
export interface ReturnMessage {
  readonly tone: 'success' | 'danger' | 'info'
  readonly text: string
  readonly link?: { readonly to: '/create-team'; readonly label: string }
}

const creditPolls = 20
const creditPause = 3000
const creditWindow = 10 * 60_000
const teamPolls = 15
const teamPause = 2000

/** Reads team_id, subscribe, checkout and from off the address, acts on them, and takes them out of it. */
export function useReturn(): { switching: boolean; message: ReturnMessage | null } {
  const [message, setMessage] = useState<ReturnMessage | null>(null)
  const switching = useNewTeam(setMessage)
  useCheckout(setMessage)
  return { switching, message }
}

type Say = (message: ReturnMessage | null) => void

/** ?team_id=&subscribe=: goes over to that team; a team just paid for may take a moment to be there. */
function useNewTeam(say: Say): boolean {
  const client = useQueryClient()
  const navigate = useNavigate()
  const search = useSearch({ from: '/shell/billing' })
  const session = useSession()
  const userId = session.status === 'in' ? session.userId : null
  const wanted = userId === null ? undefined : search.team_id
  // biome-ignore lint/correctness/useExhaustiveDependencies: the address changes as a result of this effect.
  useEffect(() => {
    if (userId === null || wanted === undefined) return
    const abort = new AbortController()
    const clean = () => {
      const { team_id: _team, subscribe: _subscribe, ...rest } = search
      void navigate({ to: '/billing', search: rest, replace: true })
    }
    const go = async () => {
      for (let attempt = 0; attempt < teamPolls; attempt += 1) {
        const fresh = { ...userInfoQuery(userId), staleTime: attempt === 0 ? 60_000 : 0 }
        const info = await client.fetchQuery(fresh).catch(() => null)
        if (abort.signal.aborted) return
        if (info?.teams.some((team) => team.id === wanted)) {
          selectTeam(wanted)
          if (search.subscribe !== undefined) say({ tone: 'success', text: copy.billing.subscribed })
          clean()
          return
        }
        await wait(teamPause, abort.signal)
        if (abort.signal.aborted) return
      }
      say({ tone: 'danger', text: copy.billing.switchFailed })
      clean()
    }
    void go()
    return () => abort.abort()
  }, [userId, wanted])
  return wanted !== undefined
}

/** ?checkout=: says how the payment went, and reads the wallet until the credit is there. */
function useCheckout(say: Say): void {
  const client = useQueryClient()
  const navigate = useNavigate()
  const search = useSearch({ from: '/shell/billing' })
  const { team } = useTeam()
  const [outcome] = useState(search.checkout)
  const [from] = useState(search.from)
  const teamId = team?.id
  // biome-ignore lint/correctness/useExhaustiveDependencies: once, for what the address said on arriving.
  useEffect(() => {
    if (from === 'storage') {
      say({
        tone: 'info',
        text: copy.billing.volumeLimit,
        link: { to: '/create-team', label: copy.billing.volumeLimitLink },
      })
    }
    if (outcome === 'cancel') say({ tone: 'info', text: copy.billing.checkoutCancelled })
    if (outcome === undefined && from === undefined) return
    const { checkout: _checkout, from: _from, ...rest } = search
    void navigate({ to: '/billing', search: rest, replace: true })
  }, [])
  useEffect(() => {
    if (outcome !== 'success' || teamId === undefined) return
    say({ tone: 'success', text: copy.billing.crediting })
    const abort = new AbortController()
    const since = Date.now() - creditWindow
    const poll = async () => {
      for (let attempt = 0; attempt < creditPolls && !abort.signal.aborted; attempt += 1) {
        await Promise.all([
          client.refetchQueries({ queryKey: balanceQuery(teamId).queryKey }),
          client.refetchQueries({ queryKey: transactionsQuery(teamId).queryKey }),
        ])
        if (hasCreditSince(client.getQueryData(transactionsQuery(teamId).queryKey), since)) {
          say({ tone: 'success', text: copy.billing.credited })
          return
        }
        await wait(creditPause, abort.signal)
      }
    }
    void poll()
    return () => abort.abort()
  }, [client, outcome, teamId, say])
}
