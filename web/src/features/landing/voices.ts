import { parseVoices, type Voice } from './model'

let known: readonly Voice[] | null | undefined

/**
 * The operator's testimonials, null for the samples. The server writes them into the document, so that they
 * are there before the first painting and after the scripts take over.
 */
export function configuredVoices(): readonly Voice[] | null {
  if (known === undefined) {
    const meta = document.querySelector<HTMLMetaElement>('meta[name="homeport-testimonials"]')
    known = parseVoices(meta?.content)
  }
  return known
}

/** Says what they are where there is no document to ask: for the prerenderer. */
export function provideVoices(voices: readonly Voice[] | null): void {
  known = voices
}
