import { clsx } from 'clsx'
import { CircleAlert } from 'lucide-react'
import { copy } from '@/copy/en'
import { TextLink } from '@/ui/button-link'
import type { Missing } from './prerequisites'

const ways = {
  noVolumes: { to: '/storage', text: copy.create.newVolume },
  noKeys: { to: '/ssh-keys', text: copy.create.newKey },
  funds: { to: '/billing', text: copy.create.addFunds },
} as const

/** What a pod cannot be created without, each with the way to it. */
export function MissingList({ missing, className }: { missing: readonly Missing[]; className?: string }) {
  if (missing.length === 0) return null
  return (
    <ul
      aria-label={copy.create.needed}
      className={clsx(
        'grid grid-cols-1 gap-2 rounded-control border border-warn/35 bg-warn-wash p-3 text-control text-hi',
        className,
      )}
    >
      {missing.map((each) => (
        <li key={each} className="flex items-start gap-2">
          <CircleAlert size={15} aria-hidden="true" className="mt-[2.5px] shrink-0 text-warn" />
          <span>
            {copy.create[each]}
            <Way missing={each} className="block" />
          </span>
        </li>
      ))}
    </ul>
  )
}

/** The first thing that is missing, in one line above the button. */
export function FirstMissing({ missing }: { missing: Missing }) {
  return (
    <p className="mb-2.5 flex flex-wrap items-center gap-x-2 text-control text-hi">
      <CircleAlert size={15} aria-hidden="true" className="shrink-0 text-warn" />
      {copy.create[missing]}
      <Way missing={missing} className="ml-auto" />
    </p>
  )
}

function Way({ missing, className }: { missing: Missing; className: string }) {
  // What is there but not chosen is chosen on this page.
  if (missing === 'missingVolume' || missing === 'missingKey') return null
  return (
    <span className={className}>
      <TextLink to={ways[missing].to}>{ways[missing].text}</TextLink>
    </span>
  )
}
