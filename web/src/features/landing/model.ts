import { asRecord } from '@/lib/storage'

const swipeThreshold = 50

/** The stage after a step, round and round. */
export function nextStage(stage: number, step: number, stages: number): number {
  return (stage + step + stages) % stages
}

/** What a horizontal drag means: left goes on, right goes back, a short one does nothing. */
export function swipeStep(distance: number): -1 | 0 | 1 {
  if (Math.abs(distance) < swipeThreshold) return 0
  return distance < 0 ? 1 : -1
}

/** What somebody says of the product. */
export interface Voice {
  readonly quote: string
  readonly name: string
  readonly work: string
}

/** The operator's testimonials as the server wrote them into the page; null where there are none. */
export function parseVoices(text: string | null | undefined): readonly Voice[] | null {
  if (!text) return null
  const list: unknown = parseJson(text)
  if (!Array.isArray(list)) return null
  const voices = list.map(asRecord).flatMap((voice) => {
    const [quote, name, work] = [voice?.quote, voice?.name, voice?.work]
    return typeof quote === 'string' && typeof name === 'string' && typeof work === 'string'
      ? [{ quote, name, work }]
      : []
  })
  return voices.length === list.length && voices.length > 0 ? voices : null
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
