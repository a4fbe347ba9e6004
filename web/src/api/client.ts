import createClient, { type Client } from 'openapi-fetch'
import { loadConfig } from './config'
import { ApiError } from './error'
import type { paths } from './schema.gen'
import { accessToken, dropSession, renewToken } from './session'

let client: Promise<Client<paths>> | null = null

/** The typed client of the API. Paths are the specification's; the base comes from /config.json. */
export function api(): Promise<Client<paths>> {
  client ??= loadConfig()
    .then((config) => createClient<paths>({ baseUrl: config.apiBase, fetch: send }))
    .catch((error: unknown) => {
      client = null
      throw error
    })
  return client
}

interface Answer<T> {
  data?: T
  error?: unknown
  response: Response
}

/** The body of an answer; a refusal is thrown as ApiError. */
export async function body<T>(answer: Promise<Answer<T>>): Promise<T> {
  const { data, error, response } = await answer
  if (!response.ok || data === undefined) throw new ApiError(response.status, error)
  return data
}

/** Waits for an answer without a body; a refusal is thrown as ApiError. */
export async function done(answer: Promise<Answer<unknown>>): Promise<void> {
  const { error, response } = await answer
  if (!response.ok) throw new ApiError(response.status, error)
}

/** Adds the bearer token. A refused token is renewed once; when that does not help the session is over. */
async function send(request: Request): Promise<Response> {
  const token = await accessToken()
  if (token === null) return fetch(request)
  const first = await fetch(withBearer(request.clone(), token))
  if (first.status !== 401) return first
  const renewed = await renewToken()
  const second = renewed === null ? first : await fetch(withBearer(request, renewed))
  if (second.status === 401) dropSession()
  return second
}

function withBearer(request: Request, token: string): Request {
  request.headers.set('Authorization', `Bearer ${token}`)
  return request
}
