// The bars of the page that need a browser: paint and shift on a slow phone, the
// change of a route, Lighthouse. Sizes are `npm run size`'s.
import { execFile } from 'node:child_process'
import { resolve } from 'node:path'
import { promisify } from 'node:util'
import { type BrowserContext, chromium, type Page } from '@playwright/test'
import type { Client } from '../client'
import { enter, freePort, type Homeport, test, widths } from '../fixture'
import { openRoutes } from '../routes'
import { Table } from './table'

const rounds = process.env.HOMEPORT_BENCH === 'smoke' ? 1 : 5
const lighthouse = resolve(import.meta.dirname, '../../lighthouse/node_modules/lighthouse/cli/index.js')
const table = new Table('The page in a browser', [
  'Phone: 390 px, CPU 4 times slower, 1.6 Mbit/s, 150 ms. Medians; each load has a cold cache.',
  'Warm route change: from the click to the frame that shows the new title, code and data at hand.',
])

test.afterAll(() => table.write('page'))

interface Paint {
  lcp: number
  shift: number
}

declare global {
  interface Window {
    paint: Paint
  }
}

/** Loads a page with an empty cache on a slow phone. */
async function onPhone(page: Page, url: string): Promise<Paint> {
  const devtools = await page.context().newCDPSession(page)
  await devtools.send('Network.emulateNetworkConditions', {
    offline: false,
    latency: 150,
    downloadThroughput: 1.6e6 / 8,
    uploadThroughput: 750e3 / 8,
  })
  await devtools.send('Emulation.setCPUThrottlingRate', { rate: 4 })
  await page.addInitScript(() => {
    window.paint = { lcp: 0, shift: 0 }
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) window.paint.lcp = entry.startTime
    }).observe({ type: 'largest-contentful-paint', buffered: true })
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) {
        if ('value' in entry && 'hadRecentInput' in entry && !entry.hadRecentInput)
          window.paint.shift += Number(entry.value)
      }
    }).observe({ type: 'layout-shift', buffered: true })
  })
  await page.goto(url)
  await page.waitForLoadState('networkidle')
  return page.evaluate(() => window.paint)
}

test('paint and shift on a slow phone', async ({ browser, homeport, seeds }) => {
  const client = await seeds.hobby1()
  const measure = async (path: string, as?: Client) => {
    const paints: Paint[] = []
    for (let i = 0; i < rounds; i++) {
      const context = await browser.newContext({ viewport: widths.M, baseURL: homeport.url })
      const page = await context.newPage()
      if (as) await enter(page, homeport, as)
      paints.push(await onPhone(page, `${homeport.url}${path}`))
      await context.close()
    }
    return paints
  }
  const landing = await measure('/')
  table.add(
    'landing, LCP',
    landing.map(({ lcp }) => lcp / 1000),
    { most: 1.2 },
    ' s',
  )
  table.add(
    'landing, CLS',
    landing.map(({ shift }) => shift),
    { most: 0.02 },
    '',
  )
  for (const path of ['/pods', '/create', '/billing']) {
    const paints = await measure(path, client)
    table.add(
      `${path}, CLS`,
      paints.map(({ shift }) => shift),
      { most: 0.02 },
      '',
    )
    table.note(`${path} signed in: LCP ${(Math.min(...paints.map(({ lcp }) => lcp)) / 1000).toFixed(2)} s.`)
  }
})

test('warm route change', async ({ page, homeport, seeds }) => {
  await page.setViewportSize(widths.D)
  await enter(page, homeport, await seeds.hobby1())
  await page.goto(`${homeport.url}/create`)
  const targets = [
    ['Pods', 'Pods'],
    ['Storage', 'Storage'],
    ['SSH Keys', 'SSH Keys'],
    ['Billing & Wallet', 'Billing & Wallet'],
    ['Create New Instance', 'Create New Instance'],
  ] as const
  const times: number[] = []
  for (let i = 0; i <= rounds; i++) {
    for (const [link, title] of targets) {
      await page.waitForLoadState('networkidle')
      const took = await page.evaluate(changeTo, { link, title })
      if (i > 0) times.push(took) // the first round brings the code
    }
  }
  table.add('warm route change', times, { most: 100 }, ' ms')
})

/** In the page: follows a link of the sidebar and resolves with the milliseconds to the frame with the new title. */
function changeTo({ link, title }: { link: string; title: string }): Promise<number> {
  const anchor = [...document.querySelectorAll('nav a')].find((a) => a.textContent?.trim() === link)
  if (!(anchor instanceof HTMLElement)) throw new Error(`no link ${link}`)
  return new Promise((done) => {
    const begin = performance.now()
    const look = () => {
      if (document.querySelector('h1')?.textContent === title) {
        requestAnimationFrame(() => done(performance.now() - begin))
      } else requestAnimationFrame(look)
    }
    anchor.click()
    look()
  })
}

test('Lighthouse', async ({ homeport, seeds }) => {
  const port = await freePort()
  const context = await chromium.launchPersistentContext('', {
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-dev-shm-usage', `--remote-debugging-port=${port}`],
  })
  try {
    const scores = await judge(port, `${homeport.url}/`)
    for (const [category, score] of Object.entries(scores)) {
      table.add(`Lighthouse, landing, ${category}`, [score], { least: 95 }, '')
    }
    await judgePages(context, port, homeport, await seeds.hobby1())
  } finally {
    await context.close()
  }
})

/** Accessibility of every page of the shell, for a visitor and signed in: the lowest of both counts. */
async function judgePages(context: BrowserContext, port: number, homeport: Homeport, client: Client) {
  const worst = new Map<string, number>()
  for (const signedIn of [false, true]) {
    if (signedIn) await enter(await context.newPage(), homeport, client)
    for (const path of signedIn ? openRoutes : ['/auth', ...openRoutes]) {
      const { accessibility = 0 } = await judge(port, homeport.url + path, 'accessibility')
      worst.set(path, Math.min(accessibility, worst.get(path) ?? 100))
    }
  }
  for (const [path, score] of worst) {
    table.add(`Lighthouse, ${path}, accessibility`, [score], { least: 95 }, '')
  }
}

interface Report {
  categories: Record<string, { score: number | null }>
}

async function judge(port: number, url: string, only?: string): Promise<Record<string, number>> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [
      lighthouse,
      url,
      `--port=${port}`,
      '--output=json',
      '--quiet',
      '--disable-storage-reset',
      `--only-categories=${only ?? 'performance,accessibility,best-practices,seo'}`,
      ...(only ? ['--throttling-method=provided'] : []), // speed is asked of the landing page only
    ],
    { maxBuffer: 64 << 20 },
  )
  const report: Report = JSON.parse(stdout)
  return Object.fromEntries(
    Object.entries(report.categories).map(([name, { score }]) => [name, Math.round((score ?? 0) * 100)]),
  )
}
