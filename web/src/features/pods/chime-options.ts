import { asRecord, readStored, writeStored } from '@/lib/storage'
import { createStore } from '@/lib/store'

const key = 'chime'
const kept = 50

/** The pods whose chime was switched off; all others sound. */
export const mutedPods = createStore<readonly string[]>(readMuted())

/** Switches the chime of a pod on or off, for this browser. */
export function setChime(podId: string, on: boolean): void {
  const others = mutedPods.get().filter((id) => id !== podId)
  mutedPods.set(on ? others : [...others, podId].slice(-kept))
  writeStored(key, { muted: mutedPods.get() })
}

function readMuted(): string[] {
  if (typeof localStorage === 'undefined') return []
  const muted = asRecord(readStored(key))?.muted
  return Array.isArray(muted) ? muted.filter((id): id is string => typeof id === 'string') : []
}
