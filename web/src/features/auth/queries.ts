import { safeRedirect } from '@/lib/redirect'
import { asRecord, readStored, removeStored, writeStored } from '@/lib/storage'

const key = 'redirect'
const keptFor = 60 * 60_000

/** Keeps where the reader wanted to go: the mailed link comes back to the origin, without it. */
export function saveRedirect(path: string, now: number = Date.now()): void {
  writeStored(key, { path, at: now })
}

/** Takes the kept path out, once, if it is younger than an hour. */
export function takeSavedRedirect(now: number = Date.now()): string | null {
  const saved = asRecord(readStored(key))
  removeStored(key)
  const at = saved?.at
  if (typeof at !== 'number' || now - at > keptFor) return null
  return safeRedirect(saved?.path, '') || null
}
