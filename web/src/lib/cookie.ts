/** The value of a cookie of this page; a missing or damaged one is null. */
export function readCookie(name: string, cookies: string = document.cookie): string | null {
  for (const part of cookies.split('; ')) {
    const at = part.indexOf('=')
    if (at > 0 && part.slice(0, at) === name) return decoded(part.slice(at + 1))
  }
  return null
}

function decoded(value: string): string | null {
  try {
    return decodeURIComponent(value)
  } catch {
    return null
  }
}

/** The text that sets a cookie for some days; 0 days remove it. */
export function cookieText(name: string, value: string, days: number): string {
  return `${name}=${encodeURIComponent(value)}; Max-Age=${days * 24 * 60 * 60}; Path=/; SameSite=Lax`
}

/** Sets a cookie of the whole origin for some days; 0 days remove it. */
export function writeCookie(name: string, value: string, days: number): void {
  // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API is missing in Firefox.
  document.cookie = cookieText(name, value, days)
}
