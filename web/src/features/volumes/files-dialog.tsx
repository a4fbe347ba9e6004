import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { reasonOf } from '@/api/error'
import type { Volume } from '@/api/types'
import { copy } from '@/copy/en'
import { Dialog } from '@/ui/dialog'
import { ListError } from '@/ui/list-error'
import { Skeleton } from '@/ui/spinner'
import { FilesFolder } from './files-folder'
import { versionsQuery } from './files-queries'
import { FilesVersions } from './files-versions'

interface FilesDialogProps {
  volume: Volume
  open: boolean
  onClose: () => void
}

/** What a volume holds, version by version. */
export default function FilesDialog({ volume, open, onClose }: FilesDialogProps) {
  return (
    <Dialog
      open={open}
      onClose={onClose}
      title={copy.files.title(volume.name)}
      description={copy.files.hint}
      closeLabel={copy.app.close}
      width="widest"
    >
      <Browser volume={volume} />
    </Dialog>
  )
}

function Browser({ volume }: { volume: Volume }) {
  const list = useQuery(versionsQuery(volume))
  // null follows the newest one.
  const [chosen, setChosen] = useState<number | null>(null)
  const [path, setPath] = useState('')
  const versions = list.data ?? []
  const version = versions.find((each) => each.version === chosen) ?? versions[0]
  return (
    <div className="grid grid-cols-1 gap-4">
      {list.isError ? (
        <ListError
          text={copy.files.versionsFailed}
          detail={reasonOf(list.error)}
          busy={list.isFetching}
          onRetry={() => void list.refetch()}
        />
      ) : null}
      {list.isPending && !list.isError ? <Skeleton className="h-80 rounded-card" /> : null}
      {list.data?.length === 0 ? (
        <div className="py-12 text-center">
          <p className="font-medium text-hi text-lead">{copy.files.empty}</p>
          <p className="mt-1 text-body">{copy.files.emptyHint}</p>
        </div>
      ) : null}
      {version ? (
        <div className="grid grid-cols-1 gap-4 md:grid-cols-[232px_minmax(0,1fr)] md:gap-6">
          <FilesVersions
            versions={versions}
            chosen={version}
            onChoose={(next) => {
              setChosen(next.newest ? null : next.version)
              setPath('')
            }}
          />
          <FilesFolder
            key={version.version}
            volume={volume}
            version={version}
            path={path}
            onPath={setPath}
            onRestored={() => setChosen(null)}
          />
        </div>
      ) : null}
    </div>
  )
}
