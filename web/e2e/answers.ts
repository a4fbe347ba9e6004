// Answers in the server's stead, typed by its own description: for exact
// figures, held states and failures. Everything else runs on the real binary.
import type { Page, Request, Route } from '@playwright/test'
import type { paths as Paths } from '../src/api/schema.gen'

type Json<A> = A extends { content: { 'application/json': infer T } } ? T : never
/** What an operation answers; a deletion answers nothing. */
type Body<O> = O extends { responses: infer R }
  ? [keyof R & (200 | 201)] extends [never]
    ? undefined
    : Json<R[keyof R & (200 | 201)]>
  : never
type Method = 'get' | 'post' | 'put' | 'patch' | 'delete'
type With<M extends Method> = {
  [P in keyof Paths]: Paths[P] extends Record<M, object> ? P : never
}[keyof Paths]
type Answer<M extends Method, P extends keyof Paths> = Paths[P] extends Record<M, infer O> ? Body<O> : never

/** Whether a request goes to an operation: '/pods/{id}' is any pod. */
export function isTo(request: Request, method: Method, path: string): boolean {
  const pattern = new RegExp(`^/api${path.replace(/\{\w+\}/g, '[^/]+')}$`)
  return request.method() === method.toUpperCase() && pattern.test(new URL(request.url()).pathname)
}

async function on(
  page: Page,
  method: Method,
  path: string,
  act: (route: Route) => Promise<void>,
): Promise<void> {
  await page.route(
    (url) => url.pathname.startsWith('/api/'),
    (route) => (isTo(route.request(), method, path) ? act(route) : route.fallback()),
  )
}

/** Answers an operation with a body; a function makes a new one for each request. The newest answer rules. */
export async function answer<M extends Method, P extends With<M> & string>(
  page: Page,
  method: M,
  path: P,
  body: Answer<M, P> | ((request: Request) => Answer<M, P>),
): Promise<void> {
  await on(page, method, path, async (route) => {
    const json = body instanceof Function ? body(route.request()) : body
    const empty = json === undefined
    await route.fulfill(
      empty ? { status: 204 } : { status: method === 'post' ? 201 : 200, json, headers: noStore },
    )
  })
}

const noStore = { 'Cache-Control': 'no-store' }

/** Refuses an operation, with the detail of a problem or with none. */
export async function refuse<M extends Method>(
  page: Page,
  method: M,
  path: With<M> & string,
  status: number,
  detail?: string,
): Promise<void> {
  await on(page, method, path, (route) =>
    route.fulfill({
      status,
      contentType: 'application/problem+json',
      body: JSON.stringify(detail === undefined ? {} : { status, detail }),
    }),
  )
}

/** Holds the requests of an operation back until the returned function lets them go on. */
export async function hold<M extends Method>(
  page: Page,
  method: M,
  path: With<M> & string,
): Promise<() => void> {
  let release = () => {}
  const released = new Promise<void>((done) => {
    release = done
  })
  await on(page, method, path, async (route) => {
    await released
    await route.fallback().catch(() => undefined) // the page may be gone by then
  })
  return release
}

/** The API requests of a page from now on, in order: `requests.to('get', '/pods')`. */
export class Requests {
  readonly all: Request[] = []

  constructor(page: Page) {
    page.on('request', (request) => {
      if (new URL(request.url()).pathname.startsWith('/api/')) this.all.push(request)
    })
  }

  to<M extends Method>(method: M, path: With<M> & string): Request[] {
    return this.all.filter((request) => isTo(request, method, path))
  }
}
