import { clsx } from 'clsx'
import { ArrowDown, ArrowUp } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { copy } from '@/copy/en'
import { useMedia } from '@/ui/media'
import { type Order, sorted } from './model'

export interface Column<Row> {
  readonly header: string
  readonly cell: (row: Row) => ReactNode
  readonly right?: boolean
  /** Width in the table: a Tailwind class. */
  readonly width?: string
  /** What the rows are ordered by when the reader chooses this column. */
  readonly sort?: (row: Row) => number | string
}

interface TableProps<Row> {
  label: string
  columns: readonly Column<Row>[]
  rows: readonly Row[]
  rowKey: (row: Row) => string
  /** A line of its own below a row. */
  note?: (row: Row) => ReactNode
  /** What the rows are ordered by already. */
  order?: Order
  /** How many rows are shown: the first ones of the order. */
  most?: number
}

const padding = 'px-3 first:pl-5 last:pr-5'

/** Rows of figures. A reader orders them by the columns that can be; on narrow screens it scrolls in its box. */
export function Table<Row>({ label, columns, rows, rowKey, note, order: first, most }: TableProps<Row>) {
  const narrow = useMedia('(max-width: 767.98px)')
  const [order, setOrder] = useState(first)
  const by = columns.find(({ header, sort }) => sort && header === order?.column)?.sort
  const shown = order && by ? sorted(rows, by, order.falling) : rows
  return (
    // What scrolls sideways must be reached by the keyboard.
    <div
      {...(narrow ? { role: 'group', 'aria-label': label, tabIndex: 0 } : {})}
      className="card overflow-x-auto"
    >
      <table
        aria-label={label}
        className="w-full min-w-[560px] table-fixed border-collapse text-left text-control"
      >
        <thead>
          <tr className="border-line-1 border-b">
            {columns.map((column) => (
              <Head
                key={column.header}
                column={column}
                order={order}
                onSort={(falling) => setOrder({ column: column.header, falling })}
              />
            ))}
          </tr>
        </thead>
        {shown.slice(0, most).map((row) => {
          const more = note?.(row)
          return (
            <tbody key={rowKey(row)} className="border-line-1 border-b last:border-0">
              <tr>
                {columns.map((column) => (
                  <td
                    key={column.header}
                    className={clsx(padding, 'py-3 align-top', column.right && 'price text-right')}
                  >
                    {column.cell(row)}
                  </td>
                ))}
              </tr>
              {more ? (
                <tr>
                  <td colSpan={columns.length} className="px-5 pb-3">
                    {more}
                  </td>
                </tr>
              ) : null}
            </tbody>
          )
        })}
      </table>
    </div>
  )
}

interface HeadProps<Row> {
  column: Column<Row>
  order: Order | undefined
  onSort: (falling: boolean) => void
}

function Head<Row>({ column: { header, right, width, sort }, order, onSort }: HeadProps<Row>) {
  const chosen = order?.column === header ? order : undefined
  const Arrow = chosen?.falling ? ArrowDown : ArrowUp
  return (
    <th
      scope="col"
      aria-sort={chosen ? (chosen.falling ? 'descending' : 'ascending') : undefined}
      className={clsx(
        padding,
        'font-medium text-low text-meta',
        width,
        right && 'text-right',
        !sort && 'py-2.5',
      )}
    >
      {sort ? (
        <button
          type="button"
          title={copy.operator.sortBy(header)}
          onClick={() => onSort(chosen ? !chosen.falling : false)}
          className={clsx(
            '-mx-1 inline-flex min-h-9 items-center gap-1 rounded-control px-1 hover:text-hi pointer-coarse:min-h-11',
            chosen && 'text-hi',
            right && 'flex-row-reverse',
          )}
        >
          {header}
          <Arrow size={12} aria-hidden="true" className={clsx('shrink-0', !chosen && 'opacity-0')} />
        </button>
      ) : (
        header
      )}
    </th>
  )
}

type CardsProps<Row> = Omit<TableProps<Row>, 'order' | 'most'> & {
  /** From which width on it is a table: a media query. */
  wide: string
}

/** A table on screens that are wide enough, cards with the same labels below. */
export function TableOrCards<Row>({ wide, ...props }: CardsProps<Row>) {
  return useMedia(wide) ? <Table {...props} /> : <Cards {...props} />
}

function Cards<Row>({ label, columns, rows, rowKey, note }: TableProps<Row>) {
  const [first, ...others] = columns
  return (
    <ul aria-label={label} className="grid grid-cols-1 gap-3 md:grid-cols-2">
      {rows.map((row) => {
        const more = note?.(row)
        return (
          <li key={rowKey(row)} className="card p-4 text-control">
            {first?.cell(row)}
            <dl className="mt-3 grid grid-cols-1 gap-2.5 border-line-1 border-t pt-3">
              {others.map((column) => (
                <div
                  key={column.header}
                  className="grid grid-cols-[104px_minmax(0,1fr)] items-baseline gap-3"
                >
                  <dt className="text-low text-meta">{column.header}</dt>
                  <dd className={clsx('min-w-0', column.right && 'price')}>{column.cell(row)}</dd>
                </div>
              ))}
            </dl>
            {more ? <div className="mt-3 border-line-1 border-t pt-3">{more}</div> : null}
          </li>
        )
      })}
    </ul>
  )
}
