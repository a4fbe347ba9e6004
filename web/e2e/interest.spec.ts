// Section L of the checks: /batch-inference and /multi-node-clusters.
import type { Page } from '@playwright/test'
import { hold, Requests, refuse } from './answers'
import type { Client } from './client'
import { expect, test } from './fixture'
import { expectAccessible, expectNoOverflow, Watch } from './looks'
import { Traffic } from './routes'

const products = ['batch-inference', 'multi-node-clusters'] as const

const button = (page: Page) => page.getByRole('button', { name: "I'm interested", exact: true })
const confirmation = (page: Page) =>
  page.getByText('You will be notified when this feature is live', { exact: true })
const spinner = (page: Page) => page.getByRole('status', { name: 'Checking your interest' })
const messages = (page: Page) => page.getByRole('alert')

async function record(client: Client, product: string, interested: boolean): Promise<void> {
  await client.post('/product-interest', { team_id: client.teamId, product, interested })
}

for (const [number, product, text] of [
  [
    190,
    products[0],
    'Process large datasets through your AI models efficiently with optimized batch processing',
  ],
  [191, products[1], "Scale across multiple nodes with the provider's management tools"],
] as const) {
  test(`${number} /${product} says what comes`, async ({ page, visit }) => {
    for (const width of ['D', 'M'] as const) {
      await visit(`/${product}`, { width })
      await expect(page.getByRole('main').getByText('Coming Soon', { exact: true })).toBeVisible()
      await expect(page.getByText(text, { exact: true })).toBeVisible()
      await expectNoOverflow(page)
    }
    await expectAccessible(page)
  })
}

test('192 a spinner stands while interest is checked, once per visit', async ({ page, visit, seeds }) => {
  const { admin, id } = await seeds.pro()
  const traffic = new Traffic(page)
  for (const product of products) {
    const requests = new Requests(page)
    const release = await hold(page, 'get', '/product-interest')
    await visit(`/${product}`, { as: admin })
    await expect(spinner(page)).toBeVisible()
    await expect(button(page)).toBeHidden()
    await release()
    await expect(button(page)).toBeEnabled()
    await expect(spinner(page)).toBeHidden()
    // Coming back to the window asks nothing again; coming back to the page does.
    await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange', { bubbles: true })))
    await traffic.quiet()
    const asked = requests.to('get', '/product-interest')
    expect(asked.map((request) => new URL(request.url()).search)).toEqual([
      `?team_id=${id}&product=${product}`,
    ])
    await page.getByRole('link', { name: 'SSH Keys' }).click()
    await expect(page.getByRole('heading', { level: 1, name: 'SSH Keys' })).toBeVisible()
    await page.goBack()
    await expect(button(page)).toBeEnabled()
    await expect.poll(() => requests.to('get', '/product-interest').length).toBe(2)
  }
})

test('193 a team that is interested reads so, without a button', async ({ page, visit, seeds }) => {
  const { admin } = await seeds.pro()
  await record(admin, products[0], true)
  await visit(`/${products[0]}`, { as: admin })
  await expect(confirmation(page)).toBeVisible()
  await expect(button(page)).toBeHidden()
  await expect(page.getByRole('main').getByRole('button')).toHaveCount(0)
  // The other product is not meant.
  await visit(`/${products[1]}`, { as: admin })
  await expect(button(page)).toBeEnabled()
  await record(admin, products[0], false)
})

test('194 a click records the interest of the team', async ({ page, visit, seeds }) => {
  const { admin, id } = await seeds.pro()
  for (const product of products) {
    const release = await hold(page, 'post', '/product-interest')
    await visit(`/${product}`, { as: admin })
    const posted = page.waitForRequest(
      (request) => request.method() === 'POST' && request.url().endsWith('/api/product-interest'),
    )
    await button(page).click()
    await expect(page.getByRole('button', { name: 'Submitting...', exact: true })).toBeDisabled()
    expect((await posted).postDataJSON()).toEqual({ team_id: id, product, interested: true })
    await release()
    await expect(confirmation(page)).toBeVisible()
    await expect(page.getByRole('main').getByRole('button')).toHaveCount(0)
    await page.reload()
    await expect(confirmation(page)).toBeVisible()
    await record(admin, product, false)
  }
})

test('194a without a team a click does nothing', async ({ page, visit, seeds }) => {
  const requests = new Requests(page)
  await refuse(page, 'get', '/user/info', 500)
  await visit(`/${products[0]}`, { as: (await seeds.pro()).admin })
  await button(page).click()
  await expect(button(page)).toBeEnabled()
  await expect(messages(page)).toHaveCount(0)
  expect(requests.to('get', '/product-interest')).toEqual([])
  expect(requests.to('post', '/product-interest')).toEqual([])
})

test('195 a failing check or submit says nothing and leaves the button', async ({
  page,
  visit,
  seeds,
  homeport,
}) => {
  const { admin } = await seeds.pro()
  const requests = new Requests(page)
  const watch = new Watch(page, homeport.url)
  await refuse(page, 'get', '/product-interest', 500, 'secret one')
  await refuse(page, 'post', '/product-interest', 500, 'secret two')
  await visit(`/${products[0]}`, { as: admin })
  await expect(button(page)).toBeEnabled()
  expect(requests.to('get', '/product-interest')).toHaveLength(1)
  await button(page).click()
  await expect.poll(() => requests.to('post', '/product-interest').length).toBe(1)
  await expect(button(page)).toBeEnabled()
  await button(page).click()
  await expect.poll(() => requests.to('post', '/product-interest').length).toBe(2)
  await expect(button(page)).toBeEnabled()
  await expect(messages(page)).toHaveCount(0)
  await expect(page.getByText(/secret|failed/i)).toHaveCount(0)
  expect(watch.errors.join('\n')).toContain('query failed')
  expect(watch.errors.join('\n')).toContain('mutation failed')
})

test('196 visitors see a disabled button and nothing is asked', async ({ page, visit }) => {
  for (const product of products) {
    const requests = new Requests(page)
    await visit(`/${product}`)
    await expect(button(page)).toBeDisabled()
    await expect(button(page)).toHaveAttribute('title', 'Sign in to express interest')
    await expect(spinner(page)).toBeHidden()
    expect(requests.to('get', '/product-interest')).toEqual([])
    expect(requests.to('post', '/product-interest')).toEqual([])
  }
})
