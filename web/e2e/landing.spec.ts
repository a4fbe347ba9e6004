// Section B of the checks: the landing page (/ and /home).
import type { Page } from '@playwright/test'
import { answer, refuse } from './answers'
import { anOffer } from './bodies'
import { expect, test } from './fixture'
import { expectNoOverflow, Watch } from './looks'

const names = [
  'GPU provisioning',
  'Volume attachment',
  'Ready for use',
  'Background sync',
  'Volume detachment',
] as const

const carousel = (page: Page) => page.getByRole('region', { name: 'How a pod and its volume meet' })
const stage = (page: Page, n: number) => page.getByRole('group', { name: `Stage ${n} of 5`, exact: true })
const preview = (page: Page) => page.getByRole('complementary', { name: 'Cheapest GPU right now' })

/** Waits until the scripts have taken over from the prerendered page. */
async function alive(page: Page): Promise<void> {
  await expect(preview(page).getByText(/^\$/)).toBeVisible()
}

/** Stops the time of the page at a fresh first stage. */
async function stopTime(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Pause', exact: true }).click()
  await page.getByRole('button', { name: '1 GPU provisioning' }).click()
  await page.clock.pauseAt(Date.now() + 3_600_000)
  await page.getByRole('button', { name: 'Play', exact: true }).click()
  await expect(stage(page, 1)).toBeVisible()
}

test('26 Login / Signup leads to the sign-in page', async ({ page, visit }) => {
  for (const [path, width, links] of [
    ['/', 'D', 2],
    ['/home', 'M', 1],
  ] as const) {
    for (let n = 0; n < links; n++) {
      await visit(path, { width })
      const link = page.getByRole('link', { name: 'Login / Signup', exact: true })
      await expect(link).toHaveCount(links)
      await link.nth(n).click()
      await expect(page).toHaveURL(/\/auth$/)
      await expect(page.getByRole('textbox', { name: 'Email' })).toBeVisible()
    }
  }
})

for (const [number, name] of [
  [27, 'Go to Dashboard'],
  [28, 'Get Started'],
] as const) {
  test(`${number} ${name} leads to /create`, async ({ page, visit }) => {
    for (const width of ['D', 'M'] as const) {
      await visit('/', { width })
      await page.getByRole('link', { name, exact: true }).click()
      await expect(page).toHaveURL(/\/create$/)
      await expect(page.getByRole('heading', { level: 1, name: 'Create New Instance' })).toBeVisible()
    }
  })
}

test('29 the banner names the clouds of the catalogue', async ({ page, visit, request }) => {
  const catalogue: Record<string, { provider: string }[]> = await (await request.get('/api/resources')).json()
  const clouds = new Set(Object.values(catalogue).flatMap((offers) => offers.map((offer) => offer.provider)))
  expect(clouds.size).toBeGreaterThanOrEqual(5)
  for (const width of ['D', 'M'] as const) {
    await visit('/', { width })
    const items = page.getByRole('list', { name: 'GPU providers' }).getByRole('listitem')
    await expect(items).toHaveCount(clouds.size)
    expect(new Set(await items.allTextContents())).toEqual(clouds)
    await expectNoOverflow(page)
  }
})

test('30 the preview shows the cheapest GPU at what a Pro team pays', async ({ page, visit }) => {
  const one = anOffer({ gpuType: 'A', gpuCount: 1, price: 1, listPrice: 1 })
  const two = anOffer({ gpuType: 'B', gpuCount: 2, price: 1.6, listPrice: 1.6, gpuMemory: 48 })
  await answer(page, 'get', '/resources', { A: [one], B: [two] })
  await visit('/')
  await expect(preview(page).getByRole('heading', { name: 'B', exact: true })).toBeVisible()
  await expect(preview(page).getByText('Starting at', { exact: true })).toBeVisible()
  await expect(preview(page).getByText('$0.672', { exact: true })).toBeVisible()
  await expect(preview(page).getByText('2 offers, 1 cloud', { exact: true })).toBeVisible()
  await expect(preview(page).getByRole('meter', { name: 'VRAM per GPU' })).toHaveAttribute(
    'aria-valuetext',
    '24 GB',
  )
})

test('30 the preview is the cheapest of the real catalogue', async ({ page, visit, request }) => {
  const catalogue: Record<string, { price: number; gpuCount: number }[]> = await (
    await request.get('/api/resources')
  ).json()
  const best = Math.min(
    ...Object.values(catalogue).flatMap((offers) => offers.map((offer) => offer.price / offer.gpuCount)),
  )
  await visit('/home')
  await expect(preview(page).getByText(`$${(best * 0.84).toFixed(3)}`, { exact: true })).toBeVisible()
})

test('31 without prices the page stays whole', async ({ page, visit, homeport }) => {
  const watch = new Watch(page, homeport.url)
  await refuse(page, 'get', '/resources', 500, 'secret')
  await visit('/')
  await expect(
    preview(page).getByText('Prices are being fetched. The dashboard shows every offer.'),
  ).toBeVisible()
  await expect(page.getByText('The list of clouds is being fetched.')).toBeVisible()
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
  await expect(carousel(page)).toBeVisible()
  await expect(page.getByRole('figure')).toHaveCount(3)
  await expect(page.getByRole('alert')).toHaveCount(0)
  await expect(page.getByText(/secret|Failed to fetch/)).toHaveCount(0)
  expect(watch.strangers).toEqual([])
})

test('32 the carousel has its five stages in order', async ({ page, visit }) => {
  await visit('/')
  await alive(page)
  const steps = carousel(page).getByRole('listitem').getByRole('button')
  await expect(steps).toHaveText(names.map((name, n) => new RegExp(`^${n + 1}\\s*${name}$`)))
  for (const [n, name] of names.entries()) {
    await steps.nth(n).click()
    await expect(stage(page, n + 1).getByRole('heading', { name, exact: true })).toBeVisible()
    await expect(steps.nth(n)).toHaveAttribute('aria-current', 'step')
    await expect(carousel(page).getByRole('group')).toHaveCount(1)
  }
})

test('33 the carousel goes on after five seconds, round and round', async ({ page, visit }) => {
  await page.clock.install()
  await visit('/')
  await alive(page)
  await stopTime(page)
  for (const next of [2, 3, 4, 5, 1]) {
    await page.clock.runFor(4_900)
    await expect(stage(page, next === 1 ? 5 : next - 1)).toBeVisible()
    await expect(stage(page, next)).toBeHidden()
    await page.clock.runFor(100)
    await expect(stage(page, next)).toBeVisible()
  }
})

test('34 a drag of 50 pixels or more turns the stage', async ({ page, visit }) => {
  await visit('/', { width: 'M' })
  await alive(page)
  await page.getByRole('button', { name: 'Pause', exact: true }).click()
  const touch = await page.context().newCDPSession(page)
  const drag = async (distance: number) => {
    const heading = carousel(page).getByRole('heading')
    await heading.scrollIntoViewIfNeeded()
    const box = await heading.boundingBox()
    if (!box) throw new Error('the stage is not drawn')
    const [x, y] = [190, box.y + box.height / 2]
    const at = (dx: number) => [{ x: x + dx, y }]
    await touch.send('Input.dispatchTouchEvent', { type: 'touchStart', touchPoints: at(0) })
    for (const part of [0.25, 0.5, 0.75, 1])
      await touch.send('Input.dispatchTouchEvent', { type: 'touchMove', touchPoints: at(distance * part) })
    await touch.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] })
  }
  await expect(carousel(page).getByRole('group')).toHaveCount(1)
  for (const [distance, shown] of [
    [-60, 2],
    [-40, 2],
    [-60, 3],
    [60, 2],
    [40, 2],
    [60, 1],
    [60, 5],
  ] as const) {
    await drag(distance)
    await expect(stage(page, shown)).toBeVisible()
    await expect(carousel(page).getByRole('group')).toHaveCount(1)
  }
})

test('35 Pause stops the carousel, and so does a wish for less motion', async ({ page, visit }) => {
  await page.clock.install()
  await visit('/')
  await alive(page)
  await stopTime(page)
  await page.clock.runFor(5_000)
  await expect(stage(page, 2)).toBeVisible()
  await page.getByRole('button', { name: 'Pause', exact: true }).click()
  await page.clock.runFor(20_000)
  await expect(stage(page, 2)).toBeVisible()
  await page.getByRole('button', { name: 'Play', exact: true }).click()
  await page.clock.runFor(5_000)
  await expect(stage(page, 3)).toBeVisible()
  await page.emulateMedia({ reducedMotion: 'reduce' })
  await expect(page.getByRole('button', { name: 'Pause', exact: true })).toBeHidden()
  await page.clock.runFor(20_000)
  await expect(stage(page, 3)).toBeVisible()
  await page.getByRole('button', { name: 'Next stage', exact: true }).click()
  await expect(stage(page, 4)).toBeVisible()
})

test('36 the pictures tell every state of a volume', async ({ page, visit }) => {
  for (const width of ['D', 'M'] as const) {
    await visit('/', { width })
    await alive(page)
    await page.getByRole('button', { name: 'Pause', exact: true }).click()
    while (!(await stage(page, 1).isVisible()))
      await page.getByRole('button', { name: 'Next stage', exact: true }).click()
    for (const [n, states] of [
      [1, ['disconnected']],
      [2, ['connecting', 'mounting']],
      [3, ['mounted']],
      [4, ['active', 'syncing']],
      [5, ['disconnected']],
    ] as const) {
      for (const state of states) {
        const word = stage(page, n).getByText(state, { exact: true })
        await expect(word).toBeVisible()
        await word.scrollIntoViewIfNeeded()
        await expect(word).toBeInViewport()
      }
      await expectNoOverflow(page)
      await page.getByRole('button', { name: 'Next stage', exact: true }).click()
    }
  }
})
