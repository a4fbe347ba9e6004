/** Keys for requests that are to be done once, however often they are sent. */
export interface OnceKeys {
  /** The key of a request; the same one for as long as it is the same request. */
  readonly of: (body: unknown) => string
  /** What is asked from now on is asked anew, whatever it is. */
  readonly forget: () => void
}

/** The keys of one form: trying again sends the key again, another content has another one. */
export function onceKeys(): OnceKeys {
  let last: { readonly text: string; readonly key: string } | null = null
  return {
    of(body) {
      const text = JSON.stringify(body)
      if (last?.text !== text) last = { text, key: newKey() }
      return last.key
    },
    forget() {
      last = null
    },
  }
}

/** 128 random bits; crypto.randomUUID is missing where a page is not served over https. */
function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
