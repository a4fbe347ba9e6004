// Section A of the checks: what holds for every page, whoever looks at it.
import type { Page } from '@playwright/test'
import { answer } from './answers'
import { ago, aPod, id } from './bodies'
import type { Client } from './client'
import { expect, test, widths } from './fixture'
import { accessibilityFaults, Watch } from './looks'
import { memberRoutes, open, operatorRoutes, Traffic, visitorRoutes } from './routes'
import type { Seeds } from './seeds'

/** A round over every page for each of these. */
interface Round {
  readonly name: string
  readonly as?: Client
  readonly routes: readonly string[]
}

async function rounds(seeds: Seeds, ...names: ('V' | 'H' | 'P' | 'O')[]): Promise<Round[]> {
  return Promise.all(
    names.map(async (name) => {
      if (name === 'V') return { name, routes: visitorRoutes }
      if (name === 'O') return { name, as: await seeds.operator(), routes: operatorRoutes }
      const as = name === 'H' ? await seeds.hobby() : (await seeds.pro()).admin
      return { name, as, routes: memberRoutes }
    }),
  )
}

/** The pods of seed P: one in each of four states. */
async function fourPods(page: Page): Promise<void> {
  const states = ['pending', 'mounting', 'ready', 'deleting'] as const
  await answer(
    page,
    'get',
    '/pods',
    states.map((status, n) => aPod({ id: id(`9f3c1a7${n}`), status, created_at: ago(n * 4000 + 90) })),
  )
}

test('12 every page has one h1 and a title of its own with the name of the product', async ({
  page,
  visit,
  seeds,
}) => {
  test.setTimeout(180_000)
  const traffic = new Traffic(page)
  const faults: string[] = []
  for (const round of await rounds(seeds, 'V', 'P', 'O')) {
    const titles = new Map<string, string>()
    await visit('/robots.txt', round)
    for (const path of round.routes) {
      await open(page, traffic, path)
      const headings = await page.getByRole('heading', { level: 1 }).count()
      if (headings !== 1) faults.push(`${round.name} ${path}: ${headings} h1`)
      const title = await page.title()
      if (!title.includes('Homeport')) faults.push(`${round.name} ${path}: ${title}`)
      const other = titles.get(title)
      if (other !== undefined && !(other === '/' && path === '/home'))
        faults.push(`${round.name} ${path}: the title of ${other}`)
      titles.set(title, path)
    }
  }
  expect(faults).toEqual([])
  const icon = await page.locator('link[rel=icon]').getAttribute('href')
  const response = await page.request.get(icon ?? '')
  expect(response.headers()['content-type']).toContain('image/svg+xml')
  expect(await response.text()).toContain('<svg')
})

test('13 axe finds nothing on any page, for anybody, at both widths', async ({ page, visit, seeds }) => {
  test.setTimeout(600_000)
  const traffic = new Traffic(page)
  const faults: string[] = []
  for (const round of await rounds(seeds, 'V', 'H', 'P', 'O')) {
    if (round.name === 'P') await fourPods(page)
    await visit('/robots.txt', round)
    for (const path of round.routes) {
      for (const width of ['D', 'M'] as const) {
        await page.setViewportSize(widths[width])
        if (width === 'D') await open(page, traffic, path)
        for (const fault of await accessibilityFaults(page))
          faults.push(`${round.name} ${path} ${width} ${fault}`)
      }
    }
  }
  expect(faults).toEqual([])
})

test('14 no page scrolls sideways at either width', async ({ page, visit, seeds }) => {
  test.setTimeout(180_000)
  const traffic = new Traffic(page)
  const faults: string[] = []
  for (const round of await rounds(seeds, 'V', 'P', 'O')) {
    if (round.name === 'P') await fourPods(page)
    await visit('/robots.txt', round)
    for (const path of round.routes) {
      for (const width of ['D', 'M'] as const) {
        await page.setViewportSize(widths[width])
        if (width === 'D') await open(page, traffic, path)
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
        if (wide > 0) faults.push(`${round.name} ${path} ${width}: ${wide} px too wide`)
      }
    }
  }
  expect(faults).toEqual([])
})

test('15 no page logs an error or asks anything of another origin', async ({
  page,
  visit,
  seeds,
  homeport,
}) => {
  test.setTimeout(180_000)
  const traffic = new Traffic(page)
  const watch = new Watch(page, homeport.url)
  for (const round of await rounds(seeds, 'V', 'H', 'P', 'O')) {
    await visit('/robots.txt', round)
    for (const path of [...round.routes, '/custom-infrastructure']) {
      await open(page, traffic, path)
      watch.errors.push(
        ...watch.errors.splice(0).map((e) => (e.startsWith('[') ? e : `[${round.name} ${path}] ${e}`)),
      )
    }
  }
  expect(watch.errors).toEqual([])
  expect(watch.strangers).toEqual([])
})

test('21 with reduced motion nothing on any page moves', async ({ page, visit, seeds }) => {
  test.setTimeout(180_000)
  const moving = () =>
    page.evaluate(() =>
      document
        .getAnimations()
        .filter((each) => Number(each.effect?.getComputedTiming().activeDuration) > 10)
        .map((each) => (each instanceof CSSAnimation ? each.animationName : 'transition')),
    )
  let go = () => {}
  const held = new Promise<void>((done) => {
    go = done
  })
  // Lists that are still to come show what else would move: skeletons and spinners.
  await page.route(
    /\/api\/(pods|volumes|ssh-keys|resources|wallet|product-interest|teams)\b/,
    async (route) => {
      await held
      await route.continue().catch(() => undefined)
    },
  )
  await visit('/pods', { as: (await seeds.pro()).admin })
  await expect.poll(moving).not.toEqual([])
  await page.emulateMedia({ reducedMotion: 'reduce' })
  const faults: string[] = []
  for (const path of memberRoutes) {
    await page.goto(path)
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
    for (const name of await moving()) faults.push(`${path}: ${name}`)
  }
  go()
  expect(faults).toEqual([])
})
