import { clsx } from 'clsx'
import { ChevronDown } from 'lucide-react'
import { useId, useState } from 'react'
import type { Version } from '@/api/types'
import { copy } from '@/copy/en'
import { formatRelative } from '@/lib/relative'
import { formatDateTime } from '@/lib/time'
import { Badge } from '@/ui/badge'
import { useMinute } from '@/ui/now'
import { formatBytes } from './files-model'

interface FilesVersionsProps {
  versions: readonly Version[]
  chosen: Version
  onChoose: (version: Version) => void
}

/** The versions of a volume to choose from: a column, which folds on a phone. */
export function FilesVersions({ versions, chosen, onChoose }: FilesVersionsProps) {
  const [open, setOpen] = useState(false)
  const id = useId()
  return (
    <nav aria-label={copy.files.versions} className="min-w-0">
      <button
        type="button"
        aria-expanded={open}
        aria-controls={id}
        onClick={() => setOpen(!open)}
        className="flex min-h-11 w-full items-center gap-2 rounded-control border border-line-2 px-3 text-left text-control text-hi md:hidden"
      >
        <span className="min-w-0 flex-1 truncate">{copy.files.of(formatDateTime(chosen.created_at))}</span>
        {chosen.newest ? <Badge tone="ready">{copy.files.newest}</Badge> : null}
        <ChevronDown
          size={14}
          aria-hidden="true"
          className={clsx('shrink-0 text-low transition-transform', open && 'rotate-180')}
        />
      </button>
      <ol
        id={id}
        className={clsx(
          'max-h-60 overflow-y-auto max-md:mt-2 max-md:rounded-control max-md:border max-md:border-line-1 md:max-h-[496px]',
          open ? '' : 'max-md:hidden',
        )}
      >
        {versions.map((version) => (
          <li key={version.version}>
            <Choice
              version={version}
              chosen={version === chosen}
              onChoose={() => {
                setOpen(false)
                onChoose(version)
              }}
            />
          </li>
        ))}
      </ol>
    </nav>
  )
}

function Choice({ version, chosen, onChoose }: { version: Version; chosen: boolean; onChoose: () => void }) {
  const now = useMinute()
  return (
    <button
      type="button"
      aria-current={chosen ? 'true' : undefined}
      onClick={onChoose}
      className={clsx(
        'w-full rounded-control px-3 py-2 text-left text-meta text-low transition-colors -outline-offset-2',
        chosen ? 'bg-ink-3' : 'hover:bg-ink-3',
      )}
    >
      <span className="flex flex-wrap items-center gap-x-2 text-control">
        <span
          className={clsx('inline-block font-medium first-letter:uppercase', chosen ? 'text-hi' : 'text-mid')}
        >
          {formatRelative(version.created_at, now)}
        </span>
        {version.newest ? <Badge tone="ready">{copy.files.newest}</Badge> : null}
      </span>
      <time dateTime={version.created_at} className="block">
        {formatDateTime(version.created_at)}
      </time>
      <span className="price block">
        {copy.files.facts(formatBytes(version.size_bytes), copy.files.entries(version.entries))}
      </span>
      <span className="block">
        {version.restored_from === null
          ? copy.files.pod(version.version, (version.pod_id ?? '').slice(0, 8))
          : copy.files.restoredAs(version.version, version.restored_from)}
      </span>
      {version.files_added === null ? null : <span className="block">{changesText(version)}</span>}
      {version.skipped > 0 ? (
        <span className="block text-warn">{copy.files.skipped(version.skipped)}</span>
      ) : null}
    </button>
  )
}

function changesText({ files_added, files_changed, files_removed }: Version): string {
  const parts = [
    [files_added ?? 0, copy.files.added],
    [files_changed ?? 0, copy.files.changed],
    [files_removed ?? 0, copy.files.removed],
  ] as const
  const told = parts.filter(([n]) => n > 0).map(([n, text]) => text(n.toLocaleString('en-US')))
  return told.length > 0 ? told.join(', ') : copy.files.unchanged
}
