import { clsx } from 'clsx'
import { FolderOpen, Lock, LockOpen, Trash2, TriangleAlert } from 'lucide-react'
import type { Volume } from '@/api/types'
import { copy } from '@/copy/en'
import { useCreateAccess, useDeleteAccess, useTeam } from '@/features/session/queries'
import { formatRate } from '@/lib/money'
import { Badge, StatusChip } from '@/ui/badge'
import { Button } from '@/ui/button'
import type { Column } from '@/ui/data-list'
import { Meter } from '@/ui/meter'
import { openModal } from '@/ui/modal-store'
import { Spinner } from '@/ui/spinner'
import { useLock } from './key-queries'
import { quotaWarning, usedPercent, usedText, volumePrice, volumeSizeGb } from './model'
import { useDeleteVolume, withKey } from './queries'

/** What visitors see in place of volumes of their own. */
export const exampleVolume: Volume = {
  id: '4b1f7d2e-8c35-4e0a-9d61-2f7a90c3b5e8',
  team_id: '',
  name: 'datasets',
  size_gb: 123,
  price_per_hour: 0.0246,
  currently_used: false,
  deleted: false,
  deleted_at: null,
  purge_at: null,
  created_at: '',
  created_by: '',
  synced_at: null,
  team_key: false,
  locked: false,
}

const { columns: heads } = copy.storage

/** What a row of the storage table shows. `onFiles` is called once the files of a volume can be looked at. */
export const volumeColumns = (onFiles: (volume: Volume) => void): readonly Column<Volume>[] => [
  { header: heads.name, width: 'w-[28%]', cell: (volume) => <VolumeName volume={volume} /> },
  { header: heads.used, cell: (volume) => <Used volume={volume} /> },
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
    cell: (volume) => (
      <div className="flex flex-wrap gap-1.5">
        {volume.currently_used ? (
          <StatusChip tone="tide">{copy.storage.inUse}</StatusChip>
        ) : (
          <StatusChip tone="ready">{copy.storage.available}</StatusChip>
        )}
        {volume.team_key ? <LockChip locked={volume.locked} /> : null}
      </div>
    ),
  },
  {
    header: heads.actions,
    width: 'w-[216px] min-[1400px]:w-[312px]',
    cell: (volume) => (
      <div className="flex flex-wrap gap-2">
        {volume === exampleVolume ? null : <Files volume={volume} onFiles={onFiles} />}
        {volume.team_key ? <LockButton volume={volume} /> : null}
        <DeleteVolume volume={volume} />
      </div>
    ),
  },
]

/** Name and id of a volume. */
export function VolumeName({ volume }: { volume: Volume }) {
  return (
    <div className="min-w-0">
      <div className="flex items-center gap-2">
        <span className="truncate font-medium text-hi" title={volume.name}>
          {volume.name}
        </span>
        {volume === exampleVolume ? <Badge>{copy.app.example}</Badge> : null}
      </div>
      <div className="num wrap-anywhere text-low text-meta">{volume.id}</div>
    </div>
  )
}

function Used({ volume: { name, size_gb } }: { volume: Volume }) {
  const warning = quotaWarning(size_gb)
  return (
    <div className="max-w-80">
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
      {warning ? (
        <p className={clsx('mt-2 flex gap-1.5 text-meta', warning === 'near' ? 'text-warn' : 'text-danger')}>
          <TriangleAlert size={14} aria-hidden="true" className="mt-px shrink-0" />
          {copy.storage.quota[warning]}
        </p>
      ) : null}
    </div>
  )
}

/** The way to the files of a volume: by its key where it is locked. */
function Files({ volume, onFiles }: { volume: Volume; onFiles: (volume: Volume) => void }) {
  const access = useCreateAccess(copy.volumeKey.signIn)
  const reason = volume.locked && !access.can ? access.reason : undefined
  return (
    <Button
      size="small"
      icon={<FolderOpen size={14} aria-hidden="true" />}
      aria-label={copy.files.openLabel(volume.name)}
      disabled={reason !== undefined}
      title={reason}
      onClick={() => withKey(volume, () => onFiles(volume))}
    >
      {copy.files.open}
    </Button>
  )
}

function LockChip({ locked }: { locked: boolean }) {
  const Icon = locked ? Lock : LockOpen
  return (
    <Badge className="h-6 gap-1.5 px-2">
      <Icon size={12} aria-hidden="true" />
      {locked ? copy.volumeKey.locked : copy.volumeKey.unlocked}
    </Badge>
  )
}

/** Opens a volume of which only the team has the key, and closes it again. */
function LockButton({ volume }: { volume: Volume }) {
  const { mutate, isPending } = useLock(volume)
  const access = useCreateAccess(copy.volumeKey.signIn)
  const { name, locked } = volume
  const reason = volume.currently_used ? copy.storage.deleteInUse : access.can ? undefined : access.reason
  const ask = () =>
    openModal({
      type: 'info',
      title: copy.volumeKey.lockTitle,
      message: copy.volumeKey.lockMessage(name),
      actions: [
        { label: copy.app.cancel },
        { label: copy.volumeKey.lock, variant: 'primary', onClick: () => mutate() },
      ],
    })
  const Icon = locked ? LockOpen : Lock
  return (
    <Button
      size="small"
      // Not disabled while it works: the focus stays.
      icon={isPending ? <Spinner /> : <Icon size={14} aria-hidden="true" />}
      aria-label={locked ? copy.volumeKey.unlockLabel(name) : copy.volumeKey.lockLabel(name)}
      disabled={reason !== undefined}
      title={reason}
      onClick={() => (locked ? withKey(volume, () => undefined) : ask())}
    >
      {locked ? copy.volumeKey.unlock : copy.volumeKey.lock}
    </Button>
  )
}

function DeleteVolume({ volume }: { volume: Volume }) {
  const { team } = useTeam()
  const { mutate } = useDeleteVolume(team?.id ?? '')
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
    <Button
      kind="danger"
      size="small"
      icon={<Trash2 size={14} aria-hidden="true" />}
      aria-label={copy.storage.deleteLabel(volume.name)}
      title={reason}
      disabled={reason !== undefined}
      onClick={ask}
    >
      {copy.app.delete}
    </Button>
  )
}
