import { useQueries, useQuery } from '@tanstack/react-query'
import { clsx } from 'clsx'
import { CornerDownRight, Download, File, Folder, SquareDashed } from 'lucide-react'
import { type KeyboardEvent, useEffect, useRef, useState } from 'react'
import { reasonOf } from '@/api/error'
import type { FolderEntry } from '@/api/types'
import { copy } from '@/copy/en'
import { formatDateTime } from '@/lib/time'
import { IconButton } from '@/ui/button'
import { ListError } from '@/ui/list-error'
import { Skeleton } from '@/ui/spinner'
import {
  crumbsOf,
  formatBytes,
  moved,
  pageSize,
  pagesOf,
  parentOf,
  rowHeight,
  rowInSight,
  rowsAt,
} from './files-model'
import { folderQuery, type Place, readAgain } from './files-queries'

interface FilesRowsProps {
  place: Place
  /** The folder that the reader walked here from, whose row takes the focus; null for who has just come. */
  cameFrom: string | null
  /** The rows of folders that were opened, by their paths. */
  rowOf: Map<string, number>
  onOpen: (path: string) => void
  onDownload: (as: 'file' | 'tar', path: string) => void
}

/** The entries of a folder. However many there are, only those in sight are read and drawn. */
export function FilesRows({ place, cameFrom, rowOf, onOpen, onDownload }: FilesRowsProps) {
  const first = useQuery(folderQuery(place, 0))
  const [top, setTop] = useState(0)
  const total = first.data?.total ?? 0
  const [from, to] = rowsAt(top, total)
  const offsets = pagesOf([from, to])
  const pages = useQueries({ queries: offsets.map((offset) => folderQuery(place, offset)) })
  const failed = pages.find((page) => page.isError) ?? (first.isError ? first : undefined)
  const entry = (index: number) =>
    pages[offsets.indexOf(Math.floor(index / pageSize) * pageSize)]?.data?.entries[index % pageSize]
  const leave = () => place.path !== '' && onOpen(parentOf(place.path))
  const list = useKeys(total, first.data ? startOf(first.data.entries, cameFrom, rowOf) : null, leave)
  const rows = Array.from({ length: to - from }, (_, n) => from + n)
  // Tab leads to the row of the keyboard, or into what is seen when that has been scrolled away.
  const stop = list.active >= from && list.active < to ? list.active : Math.min(rowInSight(top), to - 1)
  return (
    <div className="mt-3 grid grid-cols-1 gap-3">
      {failed ? (
        <ListError
          text={copy.files.folderFailed}
          detail={reasonOf(failed.error)}
          busy={failed.isFetching}
          onRetry={() => readAgain(place.volume, failed.error, () => void failed.refetch())}
        />
      ) : null}
      {first.isPending && !failed ? <Skeleton raised className="h-60 rounded-card" /> : null}
      {first.data && total === 0 ? (
        <EmptyFolder focus={cameFrom !== null} onKeyDown={list.onKeyDown} />
      ) : null}
      {total > 0 ? (
        <div
          ref={list.box}
          onScroll={({ currentTarget }) => setTop(currentTarget.scrollTop)}
          className="@container max-h-[min(456px,50dvh)] overflow-y-auto overscroll-contain rounded-card border border-line-1"
        >
          <ul
            aria-label={copy.files.folderOf(crumbsOf(place.path).at(-1)?.name ?? place.volume.name)}
            className="relative"
            style={{ height: total * rowHeight }}
            onKeyDown={list.onKeyDown}
          >
            {rows.map((index) => (
              <li
                key={index}
                data-row={index}
                aria-setsize={total}
                aria-posinset={index + 1}
                onFocus={() => list.setActive(index)}
                className="absolute inset-x-0 flex items-center border-line-1 border-b last:border-0"
                style={{ top: index * rowHeight, height: rowHeight }}
              >
                <Entry
                  entry={entry(index)}
                  reachable={index === stop}
                  onOpen={(path) => {
                    rowOf.set(path, index)
                    onOpen(path)
                  }}
                  onDownload={onDownload}
                />
              </li>
            ))}
          </ul>
        </div>
      ) : null}
    </div>
  )
}

/** The row to begin at: that of the folder left behind, else the first. Null for a reader who did not walk here. */
function startOf(
  entries: readonly FolderEntry[],
  cameFrom: string | null,
  rowOf: ReadonlyMap<string, number>,
): number | null {
  if (cameFrom === null) return null
  const found = entries.findIndex(({ path }) => `${cameFrom}/`.startsWith(`${path}/`))
  return found < 0 ? (rowOf.get(cameFrom) ?? 0) : found
}

/** Takes the place of the list, its focus too: Backspace still leads out. */
function EmptyFolder({ focus, onKeyDown }: { focus: boolean; onKeyDown: (event: KeyboardEvent) => void }) {
  const line = useRef<HTMLParagraphElement>(null)
  useEffect(() => {
    if (focus) line.current?.focus()
  }, [focus])
  return (
    <p
      ref={line}
      tabIndex={-1}
      onKeyDown={onKeyDown}
      className="rounded-card border border-line-1 py-16 text-center text-control text-low"
    >
      {copy.files.folderEmpty}
    </p>
  )
}

/**
 * Arrow keys, Home, End and the page keys walk through the list; Backspace leads out of the folder.
 * The row to start at takes the focus as soon as it is known.
 */
function useKeys(total: number, start: number | null, leave: () => void) {
  const box = useRef<HTMLDivElement>(null)
  const wanted = useRef<number | null>(null)
  const [active, setActive] = useState(0)
  const started = useRef(false)
  const go = (to: number) => {
    wanted.current = to
    setActive(to)
    const list = box.current
    if (!list) return
    const low = (to + 1) * rowHeight - list.clientHeight
    list.scrollTop = Math.min(to * rowHeight, Math.max(list.scrollTop, low))
  }
  useEffect(() => {
    if (start === null || started.current) return
    started.current = true
    go(start)
  })
  // A row that was out of sight is drawn after the list has been scrolled to it.
  useEffect(() => {
    if (wanted.current === null) return
    const main = box.current?.querySelector<HTMLElement>(`[data-row="${wanted.current}"] [data-main]`)
    if (!main) return
    wanted.current = null
    main.focus({ preventScroll: true })
  })
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Backspace') {
      event.preventDefault()
      leave()
    }
    const to = moved(event.key, active, total)
    if (to === null || event.altKey || event.ctrlKey || event.metaKey) return
    event.preventDefault()
    go(to)
  }
  return { box, active, setActive, onKeyDown }
}

interface EntryProps extends Pick<FilesRowsProps, 'onOpen' | 'onDownload'> {
  entry: FolderEntry | undefined
  /** Whether Tab leads here: to one row of the list. */
  reachable: boolean
}

const line =
  'flex h-full min-w-0 flex-1 items-center gap-3 pl-3 text-left text-control transition-colors -outline-offset-2'
/** As wide as the button behind a folder. */
const slot = 'grid w-10 shrink-0 place-items-center pointer-coarse:w-13'

function Entry({ entry, reachable, onOpen, onDownload }: EntryProps) {
  const tabIndex = reachable ? 0 : -1
  if (!entry) {
    return (
      <div className={line}>
        <Skeleton raised className="h-4 w-40" />
      </div>
    )
  }
  if (entry.type === 'folder') {
    return (
      <>
        <button
          type="button"
          data-main
          tabIndex={tabIndex}
          onClick={() => onOpen(entry.path)}
          className={clsx(line, 'pr-3 hover:bg-ink-3')}
        >
          <span className="sr-only">{copy.files.openFolder}</span>
          <Folder size={16} aria-hidden="true" className="shrink-0 text-tide" />
          <Facts entry={entry} />
        </button>
        <IconButton
          label={copy.files.downloadFolder(entry.name)}
          title={copy.files.downloadFolder(entry.name)}
          tabIndex={tabIndex}
          onClick={() => onDownload('tar', entry.path)}
          className="mx-1"
        >
          <Download size={14} aria-hidden="true" />
        </IconButton>
      </>
    )
  }
  if (entry.type === 'file') {
    return (
      <button
        type="button"
        data-main
        tabIndex={tabIndex}
        onClick={() => onDownload('file', entry.path)}
        className={clsx(line, 'group hover:bg-ink-3')}
      >
        <span className="sr-only">{copy.files.download}</span>
        <File size={16} aria-hidden="true" className="shrink-0 text-low" />
        <Facts entry={entry} />
        <span className={clsx(slot, 'text-low group-hover:text-hi')}>
          <Download size={14} aria-hidden="true" />
        </span>
      </button>
    )
  }
  const Icon = entry.type === 'link' ? CornerDownRight : SquareDashed
  return (
    <div data-main tabIndex={tabIndex} className={line}>
      <Icon size={16} aria-hidden="true" className="shrink-0 text-low" />
      <Facts entry={entry} />
      <span className={slot} />
    </div>
  )
}

/** Name, size and time: in columns, or below the name where they do not fit. */
function Facts({ entry }: { entry: FolderEntry }) {
  const size = entry.type === 'file' ? formatBytes(entry.size) : ''
  const time = formatDateTime(entry.modified_at)
  return (
    <span className="flex min-w-0 flex-1 flex-col @lg:flex-row @lg:items-center @lg:gap-4">
      <span className="min-w-0 flex-1 truncate text-hi" title={entry.name}>
        {entry.name}
        {entry.target === null ? null : (
          <span className="text-low" title={entry.target}>
            {' '}
            {copy.files.linkTo(entry.target)}
          </span>
        )}
      </span>
      <span className="price flex shrink-0 gap-3 text-low text-meta @lg:gap-4">
        <span className={clsx('@lg:w-20 @lg:text-right', size === '' && 'hidden @lg:block')}>{size}</span>
        <time dateTime={entry.modified_at} className="@lg:w-40 @lg:text-right">
          {time}
        </time>
      </span>
    </span>
  )
}
