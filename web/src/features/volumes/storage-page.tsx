import { useNavigate } from '@tanstack/react-router'
import { Plus } from 'lucide-react'
import { lazy, Suspense, useMemo, useState } from 'react'
import { reasonOf } from '@/api/error'
import { copy } from '@/copy/en'
import { useCreateAccess, useSession, useTeam } from '@/features/session/queries'
import { Button } from '@/ui/button'
import { ButtonLink } from '@/ui/button-link'
import { DataList } from '@/ui/data-list'
import { EmptyState } from '@/ui/empty-state'
import { ListError } from '@/ui/list-error'
import { Page } from '@/ui/page'
import { Skeleton } from '@/ui/spinner'
import { atVolumeLimit } from './model'
import { NewVolumeDialog } from './new-volume-dialog'
import { useVolumes } from './queries'
import { Trash } from './trash'
import { exampleVolume, volumeColumns } from './volume-columns'

const FilesDialog = lazy(() => import('./files-dialog'))

/** The storage volumes of the team on stage. */
export function StoragePage() {
  const navigate = useNavigate()
  const { team } = useTeam()
  const signedIn = useSession().status === 'in'
  const { data, isPending, isFetching, isError, error, refetch } = useVolumes()
  const access = useCreateAccess(copy.storage.signInToCreate)
  const [open, setOpen] = useState(false)
  const create = async () => {
    const pro = team?.plan === 'pro'
    // The limit is known once the list is: a click may come before it.
    const volumes = pro ? data : (data ?? (await refetch({ cancelRefetch: false })).data)
    if (atVolumeLimit(pro, volumes?.length ?? 0))
      void navigate({ to: '/billing', search: { from: 'storage' } })
    else setOpen(true)
  }
  const rows = signedIn ? data : [exampleVolume]
  const [files, setFiles] = useState<{ id: string; open: boolean } | null>(null)
  const columns = useMemo(() => volumeColumns(({ id }) => setFiles({ id, open: true })), [])
  const shown = data?.find(({ id }) => id === files?.id)
  return (
    <Page
      title={copy.storage.title}
      refreshing={isFetching && !isPending}
      actions={
        <>
          <ButtonLink to="/billing" search={{ tab: 'storage' }} kind="ghost">
            {copy.storage.history}
          </ButtonLink>
          <Button
            kind="primary"
            icon={<Plus size={15} aria-hidden="true" />}
            disabled={!access.can}
            title={access.can ? undefined : access.reason}
            onClick={create}
            className="flex-1 sm:flex-none"
          >
            {copy.storage.create}
          </Button>
        </>
      }
    >
      {isError ? (
        <ListError
          text={copy.storage.failed}
          detail={reasonOf(error)}
          busy={isFetching}
          onRetry={() => void refetch()}
        />
      ) : null}
      {signedIn && isPending && !isError ? <Skeleton className="h-44 rounded-card" /> : null}
      {rows?.length === 0 ? <EmptyState title={copy.storage.empty} hint={copy.storage.emptyHint} /> : null}
      {rows && rows.length > 0 ? (
        <DataList
          label={copy.storage.title}
          columns={columns}
          rows={rows}
          rowKey={({ id }) => id}
          wide="(min-width: 1240px)"
        />
      ) : null}
      {signedIn && data ? <Trash /> : null}
      {/* Loaded when somebody first looks. It stands here, not in its row: that is another one once cards become a table. */}
      {files && shown ? (
        <Suspense fallback={null}>
          <FilesDialog
            key={shown.id}
            volume={shown}
            open={files.open}
            onClose={() => setFiles({ ...files, open: false })}
          />
        </Suspense>
      ) : null}
      {team ? <NewVolumeDialog teamId={team.id} open={open} onClose={() => setOpen(false)} /> : null}
    </Page>
  )
}
