import { clsx } from 'clsx'
import type { ReactNode } from 'react'
import { useMedia } from './media'

export interface Column<Row> {
  readonly header: string
  readonly cell: (row: Row) => ReactNode
  readonly align?: 'right'
  /** Width in the table: a Tailwind class. */
  readonly width?: string
}

interface DataListProps<Row> {
  label: string
  columns: readonly Column<Row>[]
  rows: readonly Row[]
  rowKey: (row: Row) => string
  /** From which width on it is a table: a media query. */
  wide?: string
}

/** Rows as a table on wide screens and as cards with the same labels on narrow ones. */
export function DataList<Row>({ wide = '(min-width: 768px)', ...props }: DataListProps<Row>) {
  return useMedia(wide) ? <WideList {...props} /> : <NarrowList {...props} />
}

function WideList<Row>({ label, columns, rows, rowKey }: Omit<DataListProps<Row>, 'wide'>) {
  return (
    <div className="card overflow-hidden">
      <table aria-label={label} className="w-full table-fixed border-collapse text-left text-body">
        <thead>
          <tr className="border-line-1 border-b">
            {columns.map((column) => (
              <th
                key={column.header}
                scope="col"
                className={clsx(
                  'px-3 py-2.5 font-medium text-low text-meta first:pl-5 last:pr-5 xl:px-5',
                  column.width,
                  column.align === 'right' && 'text-right',
                )}
              >
                {column.header}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={rowKey(row)} className="border-line-1 border-b last:border-0">
              {columns.map((column) => (
                <td
                  key={column.header}
                  className={clsx(
                    'px-3 py-3.5 align-middle first:pl-5 last:pr-5 xl:px-5',
                    column.align === 'right' && 'text-right',
                  )}
                >
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function NarrowList<Row>({ label, columns, rows, rowKey }: Omit<DataListProps<Row>, 'wide'>) {
  return (
    <ul aria-label={label} className="grid grid-cols-1 gap-3 md:grid-cols-2">
      {rows.map((row) => (
        <li key={rowKey(row)} className="card p-4">
          <dl className="grid grid-cols-1 gap-3">
            {columns.map((column) => (
              <div key={column.header} className="grid grid-cols-[104px_minmax(0,1fr)] items-baseline gap-3">
                <dt className="text-low text-meta">{column.header}</dt>
                <dd className="min-w-0 text-body">{column.cell(row)}</dd>
              </div>
            ))}
          </dl>
        </li>
      ))}
    </ul>
  )
}
