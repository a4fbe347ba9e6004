// Starts the real binary once per worker, on an empty state folder, and ends it
// with everything it made. Tests share the server, never a user.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { test as base, expect, type Page } from '@playwright/test'
import type { Client } from './client'
import { operatorEmail, Seeds } from './seeds'

const bin = process.env.HOMEPORT_BIN ?? resolve(import.meta.dirname, '../../bin')

/** A port of this machine that nothing listens on. */
export async function freePort(): Promise<number> {
  return new Promise((done, fail) => {
    const probe = createServer()
    probe.once('error', fail)
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address()
      if (address === null || typeof address === 'string') throw new Error('no port')
      probe.close(() => done(address.port))
    })
  })
}

/** A running Homeport of its own. */
export class Homeport {
  readonly url: string
  readonly state: string
  readonly logs: string[] = []
  private child: ChildProcess | undefined

  constructor(private readonly port: number) {
    this.url = `http://localhost:${port}`
    this.state = mkdtempSync(join(tmpdir(), 'homeport-e2e-'))
  }

  private env(extra: Record<string, string> = {}): NodeJS.ProcessEnv {
    // What steers the tests and the measurements is no setting of the server.
    const own = Object.entries(process.env).filter(([name]) => !/^HOMEPORT_(BIN|BENCH)/.test(name))
    return {
      ...Object.fromEntries(own),
      HOMEPORT_ADDR: `127.0.0.1:${this.port}`,
      HOMEPORT_PUBLIC_URL: this.url,
      HOMEPORT_STATE_DIR: this.state,
      HOMEPORT_METRICS_ADDR: 'off',
      HOMEPORT_OPERATORS: operatorEmail,
      ...extra,
    }
  }

  /** Starts the server and returns when it is ready. */
  async start(extra: Record<string, string> = {}): Promise<void> {
    const child = spawn(join(bin, 'homeport'), ['serve'], {
      env: this.env(extra),
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (b) => this.logs.push(String(b)))
    this.child = child
    for (let i = 0; i < 600; i++) {
      if (child.exitCode !== null) throw new Error(`homeport ended:\n${this.logs.join('')}`)
      const ok = await fetch(`http://127.0.0.1:${this.port}/readyz`).then(
        (r) => r.ok,
        () => false,
      )
      if (ok) return
      await new Promise((r) => setTimeout(r, 50))
    }
    throw new Error(`homeport is not ready:\n${this.logs.join('')}`)
  }

  /** Ends the server; resolves with its exit code, null after a signal. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    const child = this.child
    if (child === undefined) return null
    if (child.exitCode !== null) return child.exitCode
    const gone = new Promise<number | null>((r) => child.once('exit', (code) => r(code)))
    child.kill(signal)
    this.child = undefined
    return gone
  }

  /** Resolves when the server has died by itself, as at a failpoint. */
  async died(): Promise<void> {
    const child = this.child
    if (child !== undefined && child.exitCode === null && child.signalCode === null)
      await new Promise((r) => child.once('exit', r))
    this.child = undefined
  }

  /** Runs an operator's command and returns what it printed. */
  command(...args: string[]): string {
    return execFileSync(join(bin, 'homeport'), args, {
      env: this.env(),
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  }

  /** Ends everything and forgets the state. */
  async destroy(): Promise<void> {
    await this.stop()
    this.command('sandbox', 'stop')
    rmSync(this.state, { recursive: true, force: true })
  }
}

/** A server of a test's own, for tests that kill it. The caller destroys it. */
export async function newHomeport(): Promise<Homeport> {
  return new Homeport(await freePort())
}

interface Visit {
  /** Who looks; a visitor by default. */
  as?: Client
  /** The team on stage; by default the person's own choice, `Client.teamId`. */
  team?: string
  width?: Width
}

/** The two widths of the checks. */
export const widths = { D: { width: 1440, height: 900 }, M: { width: 390, height: 844 } } as const
type Width = keyof typeof widths

interface Fixtures {
  /** Opens a page of the product as somebody, at one of the two widths. */
  visit: (path: string, options?: Visit) => Promise<void>
}

export const test = base.extend<Fixtures, { homeport: Homeport; seeds: Seeds }>({
  homeport: [
    // biome-ignore lint/correctness/noEmptyPattern: Playwright reads the pattern
    async ({}, use) => {
      const homeport = await newHomeport()
      try {
        await homeport.start()
        await use(homeport)
      } finally {
        await homeport.destroy()
      }
    },
    { scope: 'worker', timeout: 60_000 },
  ],
  seeds: [async ({ homeport }, use) => use(new Seeds(homeport)), { scope: 'worker' }],
  baseURL: async ({ homeport }, use) => use(homeport.url),
  visit: async ({ page, homeport }, use) => {
    const seen = new Set<Client>()
    await use(async (path, options = {}) => {
      await page.setViewportSize(widths[options.width ?? 'D'])
      if (options.as) {
        seen.add(options.as)
        await enter(page, homeport, options.as, options.team)
      }
      await page.goto(path)
    })
    for (const client of seen) await takeBack(page, homeport, client)
  },
})

/** Puts a person's session and team into the browser. Nothing is drawn yet. */
export async function enter(
  page: Page,
  homeport: Homeport,
  client: Client,
  team = client.teamId,
): Promise<void> {
  const session = JSON.stringify(await client.fresh())
  await page.context().addCookies([{ name: 'homeport-team', value: team, url: homeport.url }])
  await page.goto(`${homeport.url}/robots.txt`)
  await page.evaluate((value) => localStorage.setItem('homeport-auth', value), session)
}

/** Goes on with the session that the page may have renewed, so that the next test's is not one used up. */
async function takeBack(page: Page, homeport: Homeport, client: Client): Promise<void> {
  if (page.isClosed() || !page.url().startsWith(homeport.url)) return
  const text = await page.evaluate(() => localStorage.getItem('homeport-auth')).catch(() => null)
  const session = text === null ? null : JSON.parse(text)
  if (session?.user?.id === client.userId) client.follow(session)
}

export { expect }
