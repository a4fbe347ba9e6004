import { copy } from '@/copy/en'
import { asRecord } from '@/lib/storage'

/** A refusal by the API (RFC 9457). Match it by status or code, never by its text. */
export class ApiError extends Error {
  readonly status: number
  readonly code: string | null
  /** The server's sentence for the user. */
  readonly detail: string | null

  constructor(status: number, body: unknown) {
    const problem = asRecord(body)
    const detail = textOf(problem?.detail)
    super(detail ?? `The server answered ${status}.`)
    this.name = 'ApiError'
    this.status = status
    this.code = textOf(problem?.code)
    this.detail = detail
  }
}

/** The server's sentence for the user, or the fallback for everything that has none (a dead network, say). */
export function detailOf(error: unknown, fallback: string): string {
  return (error instanceof ApiError ? error.detail : null) ?? fallback
}

/** What to say below an error's fixed text: the server's sentence, or that it was not reached; null for a refusal without a sentence, undefined without an error. */
export function reasonOf(error: unknown): string | null | undefined {
  if (!error) return undefined
  if (error instanceof ApiError) return error.detail
  return copy.app.unreachable
}

/** Whether trying the same read again may help: not for a refusal, once for everything else. */
export function retryRead(failures: number, error: Error): boolean {
  return failures < 1 && !(error instanceof ApiError && error.status < 500)
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}
