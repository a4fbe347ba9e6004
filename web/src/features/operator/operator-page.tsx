import { useIsFetching, useQuery, useQueryClient } from '@tanstack/react-query'
import { Navigate } from '@tanstack/react-router'
import { RefreshCw } from 'lucide-react'
import { lazy, Suspense, useEffect, useState } from 'react'
import { reasonOf } from '@/api/error'
import type { OperatorOverview } from '@/api/types'
import { copy } from '@/copy/en'
import { useSession, useTeam } from '@/features/session/queries'
import { Button } from '@/ui/button'
import { ListError } from '@/ui/list-error'
import { Page } from '@/ui/page'
import { Skeleton } from '@/ui/spinner'
import { alertsOf } from './alerts'
import { Books } from './books'
import { Clouds } from './clouds'
import { Jobs } from './jobs'
import { Machines } from './machines'
import { Ago } from './parts'
import { marginsQuery, overviewQuery } from './queries'
import { Standing } from './standing'

// Its tables and its chart stand below the fold.
const Margin = lazy(() => import('./margin'))

const texts = copy.operator
const alertDays = 30

/** For operators only: visitors are asked who they are, and nobody else learns that the page is there. */
export function OperatorPage() {
  const session = useSession()
  const { info } = useTeam()
  if (session.status !== 'in') return <Navigate to="/auth" search={{ redirect: '/operator' }} replace />
  if (!info) return <Loading />
  return info.operator ? <View /> : <Navigate to="/" replace />
}

function View() {
  const overview = useQuery(overviewQuery())
  const margins = useQuery(marginsQuery(alertDays))
  const [days, setDays] = useState(alertDays)
  const [refreshing, setRefreshing] = useState(false)
  const client = useQueryClient()
  const fetching = useIsFetching({ queryKey: ['operator'] }) > 0
  const { data, error, isError } = overview
  const refresh = () => {
    setRefreshing(true)
    void client.refetchQueries({ queryKey: ['operator'], type: 'active' }).finally(() => setRefreshing(false))
  }
  return (
    <Page
      title={texts.title}
      subtitle={texts.subtitle}
      refreshing={fetching && !overview.isPending}
      actions={
        <div className="flex w-full flex-wrap items-center justify-between gap-x-4 gap-y-2">
          <span className="text-low text-meta">
            {data ? (
              <>
                {texts.updated} <Ago at={data.as_of} />
              </>
            ) : null}
          </span>
          <Button
            busy={refreshing || overview.isPending}
            icon={<RefreshCw size={14} aria-hidden="true" />}
            onClick={refresh}
          >
            {texts.refresh}
          </Button>
        </div>
      }
    >
      {isError ? (
        <ListError
          text={texts.failed}
          detail={reasonOf(error)}
          busy={overview.isFetching}
          onRetry={refresh}
        />
      ) : null}
      {data ? (
        <>
          <Standing overview={data} alerts={alertsOf(data, margins.data)} />
          <Sections overview={data} days={days} onDays={setDays} />
        </>
      ) : null}
      {data || isError ? null : <Loading />}
    </Page>
  )
}

interface SectionsProps {
  overview: OperatorOverview
  days: number
  onDays: (days: number) => void
}

function Sections({ overview, days, onDays }: SectionsProps) {
  useEffect(() => {
    // A link to a part of the page was there before the part was.
    if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView()
  }, [])
  return (
    <div className="mt-4 grid grid-cols-1 gap-12">
      <Clouds providers={overview.providers} />
      <Machines instances={overview.instances} />
      <Suspense fallback={<Skeleton className="h-[490px] rounded-card" />}>
        <Margin days={days} onDays={onDays} />
      </Suspense>
      <Jobs jobs={overview.jobs} />
      <Books overview={overview} />
    </div>
  )
}

function Loading() {
  return (
    <div className="grid grid-cols-1 gap-6">
      <Skeleton className="h-[70px] rounded-card" />
      <Skeleton className="mt-4 h-6 w-32" />
      <Skeleton className="h-72 rounded-card" />
      <Skeleton className="mt-4 h-6 w-32" />
      <Skeleton className="h-44 rounded-card" />
    </div>
  )
}
