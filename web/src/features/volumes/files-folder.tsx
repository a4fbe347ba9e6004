import { Download, History } from 'lucide-react'
import { useRef, useState } from 'react'
import type { Version, Volume } from '@/api/types'
import { copy } from '@/copy/en'
import { useDeleteAccess } from '@/features/session/queries'
import { formatDateTime } from '@/lib/time'
import { Button } from '@/ui/button'
import { openModal } from '@/ui/modal-store'
import { crumbsOf, shortened } from './files-model'
import { useDownload, useRestoreVersion } from './files-queries'
import { FilesRows } from './files-rows'

interface FilesFolderProps {
  volume: Volume
  version: Version
  path: string
  onPath: (path: string) => void
  /** Is called with the version that has the same files and is the newest now. */
  onRestored: (made: Version) => void
}

/** A folder of a version: where it is, what is in it, and what can be done with it. */
export function FilesFolder({ volume, version, path, onPath, onRestored }: FilesFolderProps) {
  const place = { volume, version: version.version, path }
  const download = useDownload()
  const [cameFrom, setCameFrom] = useState<string | null>(null)
  // Where the folders stood that were opened: a row far down is not in what the list reads first.
  const rowOf = useRef(new Map<string, number>())
  const go = (to: string) => {
    setCameFrom(path)
    onPath(to)
  }
  return (
    <section aria-label={copy.files.of(formatDateTime(version.created_at))} className="min-w-0">
      <div className="flex flex-wrap items-start gap-2">
        <Crumbs volume={volume} path={path} onPath={go} />
        <Button
          size="small"
          busy={download.isPending && download.variables.as === 'tar' && download.variables.path === path}
          icon={<Download size={14} aria-hidden="true" />}
          onClick={() => download.mutate({ ...place, as: 'tar' })}
        >
          {copy.files.downloadThis}
        </Button>
        {version.newest ? null : <Restore volume={volume} version={version} onRestored={onRestored} />}
      </div>
      <FilesRows
        key={path}
        place={place}
        cameFrom={cameFrom}
        rowOf={rowOf.current}
        onOpen={go}
        onDownload={(as, at) => download.mutate({ ...place, path: at, as })}
      />
    </section>
  )
}

/** The way from the volume to the folder. Of a long one the middle is left out: '…' leads to the last of it. */
function Crumbs({ volume, path, onPath }: Pick<FilesFolderProps, 'volume' | 'path' | 'onPath'>) {
  const whole = [{ name: volume.name, path: '' }, ...crumbsOf(path)]
  const crumbs = shortened(whole)
  return (
    <nav aria-label={copy.files.folder} className="min-w-0 flex-1 basis-32">
      <ol className="flex flex-wrap items-center gap-x-1 text-control">
        {crumbs.map((crumb, index) => (
          <li key={crumb.path} className="flex min-w-0 max-w-full items-center gap-1">
            {index > 0 ? (
              <span aria-hidden="true" className="text-low">
                /
              </span>
            ) : null}
            {index === crumbs.length - 1 ? (
              <span
                aria-current="page"
                title={crumb.name}
                className="truncate px-1 py-1.5 font-medium text-hi"
              >
                {crumb.name}
              </span>
            ) : (
              <button
                type="button"
                title={crumb.name}
                aria-label={copy.files.goTo(crumb.name)}
                onClick={() => onPath(crumb.path)}
                className="min-h-6 truncate rounded-control px-1 py-1.5 text-mid transition-colors hover:text-hi pointer-coarse:min-h-11"
              >
                {index === 1 && crumbs.length < whole.length ? '…' : crumb.name}
              </button>
            )}
          </li>
        ))}
      </ol>
    </nav>
  )
}

function Restore({
  volume,
  version,
  onRestored,
}: Pick<FilesFolderProps, 'volume' | 'version' | 'onRestored'>) {
  const { restore, restoring } = useRestoreVersion(volume, onRestored)
  const access = useDeleteAccess(copy.files.signIn)(volume.created_by)
  const reason = volume.currently_used
    ? copy.files.restoreInUse
    : access.can
      ? undefined
      : copy.files.restoreNotYours
  const ask = () =>
    openModal({
      type: 'info',
      title: copy.files.restoreTitle,
      message: copy.files.restoreMessage(volume.name, formatDateTime(version.created_at)),
      actions: [
        { label: copy.app.cancel },
        {
          label: copy.files.restoreSubmit,
          variant: 'primary',
          onClick: () => restore(version),
        },
      ],
    })
  return (
    <Button
      size="small"
      busy={restoring}
      icon={<History size={14} aria-hidden="true" />}
      disabled={reason !== undefined}
      title={reason}
      onClick={ask}
    >
      {copy.files.restore}
    </Button>
  )
}
