const units = ['B', 'kB', 'MB', 'GB', 'TB']

/** A size in bytes for people: '0 B', '999 B', '1.2 kB', '34 MB', '1.25 GB'. */
export function formatBytes(bytes: number): string {
  let value = bytes
  let unit = 0
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000
    unit++
  }
  const digits = unit === 0 ? 0 : value < 10 ? 2 : value < 100 ? 1 : 0
  return `${Number(value.toFixed(digits))} ${units[unit]}`
}

export interface Crumb {
  readonly name: string
  /** As the API takes it. */
  readonly path: string
}

/** The folders on the way to a path, without the volume itself. */
export function crumbsOf(path: string): Crumb[] {
  const parts = path.split('/').filter((part) => part !== '')
  return parts.map((part, index) => ({ name: plainName(part), path: parts.slice(0, index + 1).join('/') }))
}

const mostCrumbs = 4

/** A way that is short enough to be shown: where it begins, the last that is left out, and the last two. */
export function shortened(crumbs: readonly Crumb[]): readonly Crumb[] {
  return crumbs.length <= mostCrumbs ? crumbs : [...crumbs.slice(0, 1), ...crumbs.slice(-3)]
}

/** The folder that a path lies in. */
export function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')))
}

/** A part of an API path for people: %25 is a %, any other %XX a byte that is no text. */
function plainName(part: string): string {
  return part.replace(/%([0-9A-F]{2})/g, (_, hex: string) => (hex === '25' ? '%' : '\uFFFD'))
}

/** Height of a row in pixels; all are alike, so that only those in sight need to be there. */
export const rowHeight = 48
/** How many entries are read at once. */
export const pageSize = 200
const inSight = 12
const spare = 8

/** The first row that is seen whole where the list is scrolled to. */
export function rowInSight(scrollTop: number): number {
  return Math.ceil(Math.max(0, scrollTop) / rowHeight)
}

/** The rows to draw, first and behind the last, where the list is scrolled to. */
export function rowsAt(scrollTop: number, total: number): [from: number, to: number] {
  const first = Math.floor(Math.max(0, scrollTop) / rowHeight)
  return [Math.max(0, Math.min(first, total) - spare), Math.min(total, first + inSight + spare)]
}

/** The first entries of the pages that hold these rows. */
export function pagesOf([from, to]: readonly [number, number]): number[] {
  const pages = []
  for (let at = Math.floor(from / pageSize) * pageSize; at < to; at += pageSize) pages.push(at)
  return pages
}

const jump = 10

/** Where a key moves to in a list, or null when it moves nowhere. */
export function moved(key: string, from: number, total: number): number | null {
  const to = {
    ArrowDown: from + 1,
    ArrowUp: from - 1,
    PageDown: from + jump,
    PageUp: from - jump,
    Home: 0,
    End: total - 1,
  }[key]
  return to === undefined || total === 0 ? null : Math.min(total - 1, Math.max(0, to))
}
