import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { reasonOf } from '@/api/error'
import type { Version, Volume } from '@/api/types'
import { copy } from '@/copy/en'
import { Dialog } from '@/ui/dialog'
import { ListError } from '@/ui/list-error'
import { Skeleton } from '@/ui/spinner'
import { FilesFolder } from './files-folder'
import { readAgain, versionsQuery } from './files-queries'
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
  const [at, setAt] = useState({ newest: true, version: 0, path: '' })
  const versions = list.data ?? []
  // Who looks at the newest one goes on to what is newest then.
  const version = versions.find((each) => !at.newest && each.version === at.version) ?? versions[0]
  // A path is one of the version in which it was walked: another need not have that folder.
  const path = version?.version === at.version ? at.path : ''
  const show = ({ newest, version }: Version, path: string) => setAt({ newest, version, path })
  return (
    <div className="grid grid-cols-1 gap-4">
      {list.isError ? (
        <ListError
          text={copy.files.versionsFailed}
          detail={reasonOf(list.error)}
          busy={list.isFetching}
          onRetry={() => readAgain(volume, list.error, () => void list.refetch())}
        />
      ) : null}
      {list.isPending && !list.isError ? <Skeleton raised className="h-80 rounded-card" /> : null}
      {list.data?.length === 0 ? (
        <div className="py-12 text-center">
          <p className="font-medium text-hi text-lead">{copy.files.empty}</p>
          <p className="mt-1 text-body">{copy.files.emptyHint}</p>
        </div>
      ) : null}
      {version ? (
        <div className="grid grid-cols-1 gap-4 md:grid-cols-[232px_minmax(0,1fr)] md:gap-6">
          <FilesVersions versions={versions} chosen={version} onChoose={(next) => show(next, '')} />
          <FilesFolder
            key={version.version}
            volume={volume}
            version={version}
            path={path}
            onPath={(to) => show(version, to)}
            onRestored={(made) => show(made, path)}
          />
        </div>
      ) : null}
    </div>
  )
}
