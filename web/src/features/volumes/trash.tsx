import { ChevronDown } from 'lucide-react'
import { useId, useState } from 'react'
import { reasonOf } from '@/api/error'
import type { Volume } from '@/api/types'
import { copy } from '@/copy/en'
import { useDeleteAccess, useTeam } from '@/features/session/queries'
import { formatRate } from '@/lib/money'
import { formatDateTime } from '@/lib/time'
import { Button } from '@/ui/button'
import { ListError } from '@/ui/list-error'
import { openModal } from '@/ui/modal-store'
import { Skeleton } from '@/ui/spinner'
import { trashCost, usedText } from './model'
import { useRestoreVolume, useTrash } from './queries'
import { VolumeName } from './volume-columns'

/** The volumes that can still be had back. */
export function Trash() {
  const [open, setOpen] = useState(false)
  const id = useId()
  const { data, isPending, isFetching, isError, error, refetch } = useTrash(open)
  return (
    <section>
      <h2 className="text-control tracking-normal">
        <button
          type="button"
          aria-expanded={open}
          aria-controls={open ? id : undefined}
          onClick={() => setOpen(!open)}
          className="-ml-2 inline-flex min-h-8 items-center gap-2 rounded-control px-2 font-medium text-low transition-colors hover:text-hi pointer-coarse:min-h-11"
        >
          {copy.storage.trash}
          <ChevronDown
            size={14}
            aria-hidden="true"
            className={open ? 'transition-transform' : '-rotate-90 transition-transform'}
          />
        </button>
      </h2>
      {open ? (
        <div id={id} className="mt-2 grid grid-cols-1 gap-3">
          {isError ? (
            <ListError
              text={copy.storage.failed}
              detail={reasonOf(error)}
              busy={isFetching}
              onRetry={() => void refetch()}
            />
          ) : null}
          {isPending && !isError ? <Skeleton className="h-20 rounded-card" /> : null}
          {data?.length === 0 ? <p className="text-control text-low">{copy.storage.trashEmpty}</p> : null}
          {data && data.length > 0 ? (
            <ul aria-label={copy.storage.trash} className="card divide-y divide-line-1">
              {data.map((volume) => (
                <Row key={volume.id} volume={volume} />
              ))}
            </ul>
          ) : null}
        </div>
      ) : null}
    </section>
  )
}

function Row({ volume }: { volume: Volume }) {
  const { team } = useTeam()
  const { mutate, isPending } = useRestoreVolume(team?.id ?? '')
  const access = useDeleteAccess(copy.storage.signInToDelete)(volume.created_by)
  const ask = () =>
    openModal({
      type: 'info',
      title: copy.storage.restoreTitle,
      message: restoreMessage(volume, Date.now()),
      actions: [
        { label: copy.app.cancel },
        { label: copy.storage.restore, variant: 'primary', onClick: () => mutate(volume) },
      ],
    })
  return (
    <li className="flex flex-wrap items-center gap-x-6 gap-y-2 px-5 py-3">
      <div className="min-w-0 flex-1 basis-60">
        <VolumeName volume={volume} />
      </div>
      <p className="price flex-1 basis-48 text-control text-low sm:flex-none sm:basis-72">
        {usedText(volume.size_gb)}
        {volume.purge_at ? (
          <span className="block text-meta">{copy.storage.keptUntil(formatDateTime(volume.purge_at))}</span>
        ) : null}
      </p>
      <Button
        size="small"
        busy={isPending}
        aria-label={copy.storage.restoreLabel(volume.name)}
        disabled={!access.can}
        title={access.can ? undefined : copy.storage.restoreNotYours}
        onClick={ask}
      >
        {copy.storage.restore}
      </Button>
    </li>
  )
}

function restoreMessage({ name, size_gb, deleted_at }: Volume, now: number): string {
  const cost = trashCost(size_gb, deleted_at ?? '', now)
  return cost > 0 ? copy.storage.restoreCosts(name, formatRate(cost, 4)) : copy.storage.restoreFree(name)
}
