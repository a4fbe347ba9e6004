/** The loudness of the ready chime. */
export const chimeVolume = 0.5
const chimeGap = 1000

/** Says whether a chime may sound now: at most one a second. */
export function createChimeGate(): (now: number) => boolean {
  let last = Number.NEGATIVE_INFINITY
  return (now) => {
    if (now - last < chimeGap) return false
    last = now
    return true
  }
}

const gate = createChimeGate()

/** Plays the ready chime. A browser that forbids sound before a first click makes it silent, not an error. */
export function playChime(url: string, now: number = Date.now()): void {
  if (!gate(now)) return
  const audio = new Audio(url)
  audio.volume = chimeVolume
  audio.play().catch((error: unknown) => console.info('chime: not played', error))
}

/** Loads the sound inside a click, so that the browser lets it play later. */
export function primeChime(url: string): void {
  const audio = new Audio(url)
  audio.preload = 'auto'
  audio.load()
}
