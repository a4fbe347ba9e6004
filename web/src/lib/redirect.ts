/**
 * A path of this origin to go to after signing in, or the fallback: other origins ('https://…', '//…', '/\…')
 * and the sign-in page itself are refused.
 */
export function safeRedirect(value: unknown, fallback: string): string {
  if (typeof value !== 'string' || !/^\/(?![/\\])/.test(value)) return fallback
  // The URL parser drops tabs and line ends: '/\t/evil.test' would become another origin.
  const url = new URL(value, 'http://origin.invalid')
  if (url.origin !== 'http://origin.invalid' || url.pathname === '/auth') return fallback
  // '/x/..//evil.test' is one of this origin, but what is left of it is not.
  if (url.pathname.startsWith('//')) return fallback
  return url.pathname + url.search + url.hash
}
