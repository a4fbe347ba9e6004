import { Plus } from 'lucide-react'
import { useState } from 'react'
import { reasonOf } from '@/api/error'
import { copy } from '@/copy/en'
import { useSession, useTeam } from '@/features/session/queries'
import { Dot } from '@/ui/badge'
import { ButtonLink, TextLink } from '@/ui/button-link'
import { EmptyState } from '@/ui/empty-state'
import { ListError } from '@/ui/list-error'
import { Page } from '@/ui/page'
import { Skeleton } from '@/ui/spinner'
import { phaseTones } from './model'
import { PodCard } from './pod-card'
import { usePods } from './queries'

/** The pods of the team on stage. */
export function PodsPage() {
  const { data, isPending, isFetching, isLoadingError, error, refetch } = usePods()
  const signedIn = useSession().status === 'in'
  const [retrying, setRetrying] = useState(false)
  const retry = () => {
    setRetrying(true)
    void refetch().finally(() => setRetrying(false))
  }
  const createLink = (
    <ButtonLink
      button
      to="/create"
      kind="primary"
      icon={<Plus size={15} aria-hidden="true" />}
      className="w-full sm:w-auto"
    >
      {copy.pods.create}
    </ButtonLink>
  )
  return (
    <Page
      title={copy.pods.title}
      aside={<Legend />}
      actions={createLink}
      refreshing={isFetching && !isPending}
    >
      {isLoadingError ? (
        <ListError text={copy.pods.failed} detail={reasonOf(error)} busy={retrying} onRetry={retry} />
      ) : null}
      {signedIn && isPending && !isLoadingError ? <Waiting /> : null}
      {!signedIn || data?.length === 0 ? (
        <EmptyState
          title={copy.pods.empty}
          hint={copy.pods.emptyHint}
          action={
            <ButtonLink to="/create" kind="primary">
              {copy.pods.choose}
            </ButtonLink>
          }
        />
      ) : null}
      {data && data.length > 0 ? (
        <ul className="grid grid-cols-1 gap-4 xl:grid-cols-2">
          {data.map((pod) => (
            <li key={pod.id} className="min-w-0">
              <PodCard pod={pod} />
            </li>
          ))}
        </ul>
      ) : null}
      <Cheaper />
    </Page>
  )
}

function Legend() {
  const names = copy.pods.legendNames
  const entries = ['pending', 'setup', 'ready', 'switching_off', 'deleting'] as const
  return (
    <ul aria-label={copy.pods.legend} className="flex flex-wrap gap-x-4 gap-y-1 text-low text-meta">
      {entries.map((phase) => (
        <li key={phase} className="flex items-center gap-1.5">
          <Dot tone={phaseTones[phase]} />
          {names[phase]}
        </li>
      ))}
    </ul>
  )
}

function Waiting() {
  return (
    <div className="grid grid-cols-1 gap-4 xl:grid-cols-2" aria-busy="true">
      <Skeleton className="h-[367px] rounded-card sm:h-[303px]" />
      <Skeleton className="h-[367px] rounded-card sm:h-[303px]" />
    </div>
  )
}

function Cheaper() {
  const { team } = useTeam()
  if (team?.plan === 'pro') return <p className="text-control text-low">{copy.pods.cheaperPro}</p>
  return (
    <p className="text-control text-low">
      {copy.pods.cheaper}. <TextLink to="/create-team">{copy.pods.seePro}</TextLink>
    </p>
  )
}
