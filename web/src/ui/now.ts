import { useSyncExternalStore } from 'react'

let timer: ReturnType<typeof setInterval> | null = null
const watchers = new Set<() => void>()

function watch(watcher: () => void): () => void {
  watchers.add(watcher)
  timer ??= setInterval(() => {
    for (const each of watchers) each()
  }, 1000)
  return () => {
    watchers.delete(watcher)
    if (watchers.size > 0 || timer === null) return
    clearInterval(timer)
    timer = null
  }
}

/** The present in milliseconds, cut to the second; one timer serves everything that ticks. */
export function useNow(): number {
  return useSyncExternalStore(watch, () => Math.floor(Date.now() / 1000) * 1000)
}

/** The present in milliseconds, cut to the minute: for 'n minutes ago'. */
export function useMinute(): number {
  return useSyncExternalStore(watch, () => Math.floor(Date.now() / 60_000) * 60_000)
}
