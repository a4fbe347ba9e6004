import { loadConfig } from './config'
import { ApiError } from './error'
import type { paths } from './schema.gen'
import { accessToken, dropSession, renewToken } from './session'

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete'
type Path<M extends Method> = {
  [P in keyof paths]: paths[P] extends Record<M, object> ? P : never
}[keyof paths]
type Operation<M extends Method, P extends keyof paths> = paths[P] extends Record<M, infer O> ? O : never

/** The key K with what operation O takes there; nothing where it takes nothing. */
type Part<K extends string, T> = [T] extends [never] ? unknown : { readonly [key in K]: T }
type Parameter<O, K extends string> = O extends { parameters: { [key in K]?: infer T } }
  ? NonNullable<T>
  : never
type Body<O> = O extends { requestBody: { content: { 'application/json': infer T } } } ? T : never
type Input<O> = Part<'query', Parameter<O, 'query'>> &
  Part<'path', Parameter<O, 'path'>> &
  Part<'body', Body<O>>
type Json<A> = A extends { content: { 'application/json': infer T } } ? T : undefined
type Answer<O> = O extends { responses: infer R } ? Json<R[keyof R & (200 | 201 | 204)]> : never

interface Options {
  /** Another beginning of the address than the configured one. */
  readonly base?: string
  readonly credentials?: RequestCredentials
  /** The Idempotency-Key: what is sent again under it is done once. */
  readonly key?: string
}

interface AnyInput {
  readonly query?: Readonly<Record<string, unknown>>
  readonly path?: Readonly<Record<string, unknown>>
  readonly body?: unknown
}

/** Calls the API, typed by its description. A refusal is thrown as ApiError. */
export async function call<M extends Method, P extends Path<M> & string>(
  method: M,
  path: P,
  input: Input<Operation<M, P>> & AnyInput,
  options: Options = {},
): Promise<Answer<Operation<M, P>>> {
  const base = options.base ?? (await loadConfig()).apiBase
  const response = await send(base + address(path, input), {
    method: method.toUpperCase(),
    headers: {
      ...(input.body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...(options.key === undefined ? {} : { 'Idempotency-Key': options.key }),
    },
    ...(input.body === undefined ? {} : { body: JSON.stringify(input.body) }),
    ...(options.credentials ? { credentials: options.credentials } : {}),
  })
  const text = await response.text()
  const json = text === '' ? undefined : parse(text)
  if (!response.ok) throw new ApiError(response.status, json)
  return json
}

/** Reads a file that the API makes. A refusal is thrown as ApiError. */
export async function readFile<P extends Path<'get'> & string>(
  path: P,
  input: Input<Operation<'get', P>> & AnyInput,
): Promise<Blob> {
  const { apiBase } = await loadConfig()
  const response = await send(apiBase + address(path, input), { headers: {} })
  if (!response.ok) throw new ApiError(response.status, parse(await response.text()))
  return response.blob()
}

/** Fills a path template and appends the query: '/pods/{id}' → '/pods/1?team_id=2'. */
export function address(template: string, { path = {}, query = {} }: AnyInput): string {
  const filled = template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(path[name])))
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined)
  const search = new URLSearchParams(pairs.map(([name, value]) => [name, String(value)])).toString()
  return search === '' ? filled : `${filled}?${search}`
}

/** Adds the bearer token. A refused token is renewed once; when that does not help the session is over. */
export async function send(
  url: string,
  init: RequestInit & { headers: Record<string, string> },
): Promise<Response> {
  const attempt = (token: string) =>
    fetch(url, { ...init, headers: { ...init.headers, Authorization: `Bearer ${token}` } })
  const token = await accessToken()
  if (token === null) return fetch(url, init)
  const first = await attempt(token)
  if (first.status !== 401) return first
  const renewed = await renewToken()
  const second = renewed === null ? first : await attempt(renewed)
  if (second.status === 401) dropSession()
  return second
}

function parse(text: string) {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
