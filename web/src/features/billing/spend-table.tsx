import { copy } from '@/copy/en'
import { dayName } from '@/lib/chart'
import { formatUsd } from '@/lib/money'
import { type SpendDay, spendTotal } from './spend'

const texts = copy.spend
const cell = 'py-2.5 text-right font-medium'

/** The days that cost something, newest first, and what they cost together. */
export function SpendTable({ spend }: { spend: readonly SpendDay[] }) {
  const days = spend.filter(({ pods, storage }) => pods !== 0 || storage !== 0).reverse()
  return (
    <table aria-label={texts.title} className="price mt-2 w-full text-left text-control">
      <thead>
        <tr className="border-line-1 border-b text-low text-meta">
          <th scope="col" className="py-2.5 font-medium">
            {texts.day}
          </th>
          {[texts.pods, texts.storage, texts.total].map((text) => (
            <th key={text} scope="col" className={cell}>
              {text}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {days.map((each) => (
          <Line
            key={each.day}
            head={dayName(each.day)}
            sums={[each.pods, each.storage, each.pods + each.storage]}
          />
        ))}
      </tbody>
      <tfoot>
        <Line
          head={texts.total}
          sums={[
            spendTotal(days.map((each) => ({ ...each, storage: 0 }))),
            spendTotal(days.map((each) => ({ ...each, pods: 0 }))),
            spendTotal(days),
          ]}
        />
      </tfoot>
    </table>
  )
}

function Line({ head, sums }: { head: string; sums: readonly [number, number, number] }) {
  return (
    <tr className="border-line-1 border-b last:border-0">
      <th scope="row" className="py-2.5 font-medium text-hi">
        {head}
      </th>
      {(['pods', 'storage', 'total'] as const).map((column, index) => (
        <td key={column} className={cell}>
          {formatUsd(sums[index])}
        </td>
      ))}
    </tr>
  )
}
