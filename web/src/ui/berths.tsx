import { clsx } from 'clsx'

const places = [1, 2, 3, 4, 5, 6, 7, 8] as const

/** A GPU count as berths of a quay: eight places, the taken ones lit. */
export function Berths({ count, label, className }: { count: number; label: string; className?: string }) {
  return (
    <span role="img" aria-label={label} className={clsx('inline-flex gap-[3px]', className)}>
      {places.map((place) => (
        <span
          key={place}
          className={clsx('h-3.5 w-[7px] rounded-[2px]', place <= count ? 'bg-beacon' : 'bg-line-1')}
        />
      ))}
    </span>
  )
}
