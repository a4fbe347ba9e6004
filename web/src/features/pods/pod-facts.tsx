import { CalendarClock, HardDrive, MapPin, RefreshCw } from 'lucide-react'
import type { ReactNode } from 'react'
import type { Pod } from '@/api/types'
import { copy } from '@/copy/en'
import { useVolumes } from '@/features/volumes/queries'
import { nameOf } from '@/lib/names'
import { formatAgo, formatDateTime } from '@/lib/time'
import { useNow } from '@/ui/now'

/** The quiet lines of a card: its volume, where it runs, since when, and how old the last sync is. */
export function PodFacts({ pod }: { pod: Pod }) {
  // The name is read from the cache: the page asks for its pods first, the shell for the rest a moment later.
  const { data: volumes } = useVolumes(false)
  const volume = volumes?.find((each) => each.id === pod.volume_id)?.name ?? copy.pods.volume
  const place = [nameOf(pod.provider), pod.country].filter(Boolean).join(', ')
  return (
    <ul className="grid min-w-0 flex-1 grid-cols-1 gap-x-4 gap-y-1.5 text-low text-meta sm:grid-cols-2">
      <Fact icon={<HardDrive size={13} />}>
        <span className="truncate text-mid" title={volume}>
          {volume}
        </span>
        <span className="num">/workspace</span>
      </Fact>
      <Fact icon={<CalendarClock size={13} />}>
        <time dateTime={pod.created_at} className="truncate">
          {copy.pods.created(formatDateTime(pod.created_at))}
        </time>
      </Fact>
      {place ? (
        <Fact icon={<MapPin size={13} />}>
          <span className="truncate">{place}</span>
        </Fact>
      ) : null}
      <LastEvent pod={pod} />
    </ul>
  )
}

/** When a pod ended; before that, when its files were last synced. */
function LastEvent({ pod }: { pod: Pod }) {
  const now = useNow()
  const instant = pod.ended_at ?? pod.synced_at
  if (!instant) return null
  const text = pod.ended_at ? copy.pods.ended : copy.pods.synced
  return (
    <Fact icon={<RefreshCw size={13} />}>
      <time dateTime={instant} title={formatDateTime(instant)} className="truncate">
        {text(formatAgo(now - Date.parse(instant)))}
      </time>
    </Fact>
  )
}

function Fact({ icon, children }: { icon: ReactNode; children: ReactNode }) {
  return (
    <li className="flex min-w-0 items-center gap-1.5">
      <span aria-hidden="true" className="shrink-0">
        {icon}
      </span>
      {children}
    </li>
  )
}
