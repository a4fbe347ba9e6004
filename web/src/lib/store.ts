/** One value that can be watched: what React's useSyncExternalStore asks for. */
export interface Store<T> {
  readonly get: () => T
  readonly set: (next: T) => void
  /** Calls back on every change. Returns the way to stop. */
  readonly watch: (watcher: () => void) => () => void
}

/** Makes a store; setting the same value again tells nobody. */
export function createStore<T>(initial: T): Store<T> {
  let value = initial
  const watchers = new Set<() => void>()
  return {
    get: () => value,
    set: (next) => {
      if (Object.is(next, value)) return
      value = next
      for (const watcher of [...watchers]) watcher()
    },
    watch: (watcher) => {
      watchers.add(watcher)
      return () => watchers.delete(watcher)
    },
  }
}
