// Starts the real binary once per worker, on an empty state folder, and ends it
// with everything it made. Tests share the server, never a user.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { test as base, expect } from '@playwright/test'

const bin = process.env.HOMEPORT_BIN ?? resolve(import.meta.dirname, '../../bin')

async function freePort(): Promise<number> {
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
    return {
      ...process.env,
      HOMEPORT_ADDR: `127.0.0.1:${this.port}`,
      HOMEPORT_PUBLIC_URL: this.url,
      HOMEPORT_STATE_DIR: this.state,
      HOMEPORT_METRICS_ADDR: 'off',
      ...extra,
    }
  }

  /** Starts the server and returns when it is ready. */
  async start(extra: Record<string, string> = {}): Promise<void> {
    const { HOMEPORT_BIN: _, ...env } = this.env(extra)
    const child = spawn(join(bin, 'homeport'), ['serve'], { env, stdio: ['ignore', 'pipe', 'pipe'] })
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
    const { HOMEPORT_BIN: _, ...env } = this.env()
    return execFileSync(join(bin, 'homeport'), args, {
      env,
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

// biome-ignore lint/complexity/noBannedTypes: Playwright's word for "no fixtures of this scope"
export const test = base.extend<{}, { homeport: Homeport }>({
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
})

export { expect }
