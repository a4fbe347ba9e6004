import { useNavigate } from '@tanstack/react-router'
import { Plus, Trash2 } from 'lucide-react'
import { useState } from 'react'
import type { Volume } from '@/api/types'
import { copy } from '@/copy/en'
import { useCreateAccess, useDeleteAccess, useSession, useTeam } from '@/features/session/queries'
import { formatRate } from '@/lib/money'
import { StatusChip } from '@/ui/badge'
import { Button, IconButton } from '@/ui/button'
import { ButtonLink } from '@/ui/button-link'
import { type Column, DataList } from '@/ui/data-list'
import { EmptyState } from '@/ui/empty-state'
import { ListError } from '@/ui/list-error'
import { Meter } from '@/ui/meter'
import { openModal } from '@/ui/modal-store'
import { Page } from '@/ui/page'
import { Skeleton } from '@/ui/spinner'
import { atVolumeLimit, usedPercent, usedText, volumePrice, volumeSizeGb } from './model'
import { NewVolumeDialog } from './new-volume-dialog'
import { useDeleteVolume, useVolumes } from './queries'

/** The storage volumes of the team on stage. */
export function StoragePage() {
  const navigate = useNavigate()
  const { team } = useTeam()
  const signedIn = useSession().status === 'in'
  const { data, isPending, isFetching, isError, refetch } = useVolumes()
  const access = useCreateAccess(copy.storage.signInToCreate)
  const [open, setOpen] = useState(false)
  const create = () => {
    if (atVolumeLimit(team?.plan === 'pro', data?.length ?? 0))
      void navigate({ to: '/billing', search: { from: 'storage' } })
    else setOpen(true)
  }
  const createButton = (
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
  )
  return (
    <Page
      title={copy.storage.title}
      refreshing={isFetching && !isPending}
      actions={
        <>
          <ButtonLink to="/billing" search={{ tab: 'storage' }} kind="ghost">
            {copy.storage.history}
          </ButtonLink>
          {createButton}
        </>
      }
    >
      {isError ? (
        <ListError text={copy.storage.failed} busy={isFetching} onRetry={() => void refetch()} />
      ) : null}
      {signedIn && isPending && !isError ? <Skeleton className="h-44 rounded-card" /> : null}
      {!signedIn || data?.length === 0 ? (
        <EmptyState title={copy.storage.empty} hint={copy.storage.emptyHint} />
      ) : null}
      {data && data.length > 0 ? (
        <DataList label={copy.storage.title} columns={columns} rows={data} rowKey={(volume) => volume.id} />
      ) : null}
      {team ? <NewVolumeDialog teamId={team.id} open={open} onClose={() => setOpen(false)} /> : null}
    </Page>
  )
}

const { columns: heads } = copy.storage

const columns: readonly Column<Volume>[] = [
  {
    header: heads.name,
    width: 'w-[30%]',
    cell: (volume) => (
      <div className="min-w-0">
        <div className="truncate font-medium text-hi">{volume.name}</div>
        <div className="num truncate text-low text-meta" title={volume.id}>
          {volume.id}
        </div>
      </div>
    ),
  },
  {
    header: heads.used,
    cell: ({ name, size_gb }) => (
      <div className="max-w-72">
        <div className="price flex justify-between text-control">
          <span className="text-hi">{usedText(size_gb)}</span>
          <span className="text-low">{usedPercent(size_gb)}</span>
        </div>
        <Meter
          label={`${heads.used}: ${name}`}
          value={size_gb}
          max={volumeSizeGb}
          text={usedText(size_gb)}
          palette="usage"
          className="mt-2"
        />
      </div>
    ),
  },
  {
    header: heads.price,
    width: 'w-[150px]',
    cell: ({ size_gb }) => (
      <span className="price text-hi">
        {formatRate(volumePrice(size_gb), 4)}
        <span className="text-low">{copy.pods.perHour}</span>
      </span>
    ),
  },
  {
    header: heads.status,
    width: 'w-[130px]',
    cell: ({ currently_used }) =>
      currently_used ? (
        <StatusChip tone="tide">{copy.storage.inUse}</StatusChip>
      ) : (
        <StatusChip tone="ready">{copy.storage.available}</StatusChip>
      ),
  },
  { header: heads.actions, width: 'w-[96px]', cell: (volume) => <DeleteVolume volume={volume} /> },
]

function DeleteVolume({ volume }: { volume: Volume }) {
  const { mutate } = useDeleteVolume(volume.team_id)
  const access = useDeleteAccess(copy.storage.signInToDelete)(volume.created_by)
  const reason = volume.currently_used ? copy.storage.deleteInUse : access.can ? undefined : access.reason
  const ask = () =>
    openModal({
      type: 'info',
      title: copy.storage.deleteTitle,
      message: copy.storage.deleteMessage(volume.name),
      actions: [
        { label: copy.app.cancel },
        { label: copy.app.delete, variant: 'alarm', onClick: () => mutate(volume) },
      ],
    })
  return (
    <IconButton
      label={copy.storage.deleteLabel(volume.name)}
      title={reason ?? copy.app.delete}
      disabled={reason !== undefined}
      onClick={ask}
      className="enabled:hover:bg-danger-wash enabled:hover:text-danger"
    >
      <Trash2 size={16} aria-hidden="true" />
    </IconButton>
  )
}
