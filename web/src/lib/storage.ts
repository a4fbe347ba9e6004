/** The prefix of every browser-storage key of the product: signing out removes them all. */
export const storagePrefix = 'homeport-'

/** Reads a JSON value; a missing, unreadable or damaged one is null. The caller checks its shape. */
export function readStored(key: string): unknown {
  try {
    const text = localStorage.getItem(storagePrefix + key)
    return text === null ? null : JSON.parse(text)
  } catch {
    return null
  }
}

/** Writes a JSON value; a full or forbidden storage is not an error for the page. */
export function writeStored(key: string, value: unknown): void {
  try {
    localStorage.setItem(storagePrefix + key, JSON.stringify(value))
  } catch (error) {
    console.warn('storage: not written', error)
  }
}

/** Removes one value. */
export function removeStored(key: string): void {
  try {
    localStorage.removeItem(storagePrefix + key)
  } catch {
    // Nothing was stored where storage is forbidden.
  }
}

/** Removes every value of the product. */
export function clearStored(): void {
  try {
    for (const key of Object.keys(localStorage)) {
      if (key.startsWith(storagePrefix)) localStorage.removeItem(key)
    }
  } catch {
    // Nothing was stored where storage is forbidden.
  }
}

/** A record whose members are still unknown, or null. */
export function asRecord(value: unknown): Readonly<Record<string, unknown>> | null {
  return isRecord(value) ? value : null
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
