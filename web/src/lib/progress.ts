/** How long a loading modal takes by default to come as far as it may. */
export const defaultDuration = 2000
/** The loading modal advances in steps of this many milliseconds. */
export const progressStep = 50
const ceiling = 95

/** The progress of a loading modal in percent: linear in whole steps, never beyond 95 before the work is done. */
export function progressAt(elapsed: number, duration: number = defaultDuration): number {
  const stepped = Math.floor(elapsed / progressStep) * progressStep
  return Math.min(ceiling, (ceiling * stepped) / duration)
}

/** The count-and-type token of a message, such as 2xA100_80GB, with the text around it; null without one. */
export function splitToken(message: string): { before: string; token: string; after: string } | null {
  const found = /\d+x[A-Za-z0-9_]+/.exec(message)
  if (!found) return null
  const [token] = found
  return { before: message.slice(0, found.index), token, after: message.slice(found.index + token.length) }
}
