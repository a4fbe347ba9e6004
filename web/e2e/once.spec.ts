// Beyond the checks: what is paid for is asked for once, and errors say why.
import type { Page } from '@playwright/test'
import { Requests, refuse } from './answers'
import { expect, test } from './fixture'
import { expectAccessible } from './looks'

/** Loses the next answer of the server, after it did what was asked; returns what it had answered. */
async function loseAnswer(page: Page, path: RegExp): Promise<() => string> {
  let answered = ''
  await page.route(
    path,
    async (route) => {
      answered = await (await route.fetch()).text()
      await route.abort()
    },
    { times: 1 },
  )
  return () => answered
}

/** The keys with which an address was asked. */
const keysOf = (requests: Requests, path: '/wallet/credit/checkout' | '/teams/checkout') =>
  requests.to('post', path).map((request) => request.headers()['idempotency-key'] ?? '')

/** The address of a checkout in an answer. */
const urlOf = (answer: string): string => JSON.parse(answer).checkout_url

test('a top-up whose answer got lost is the same one when it is tried again', async ({
  page,
  visit,
  seeds,
}) => {
  await visit('/billing', { as: await seeds.newcomer() })
  const requests = new Requests(page)
  const lost = await loseAnswer(page, /\/api\/wallet\/credit\/checkout/)
  await page.getByRole('button', { name: '$25', exact: true }).click()
  const pay = page.getByRole('button', { name: 'Pay Now' })
  await pay.click()
  await expect(page.getByRole('alert').getByText('Failed to create checkout session')).toBeVisible()
  await pay.click()
  await expect(page).toHaveURL(urlOf(lost()))
  const [first, second] = keysOf(requests, '/wallet/credit/checkout')
  expect(first).toMatch(/^[0-9a-f]{32}$/)
  expect(second).toBe(first)

  await page.getByRole('button', { name: 'Cancel and go back' }).click()
  await page.getByRole('button', { name: '$25', exact: true }).click()
  await page.getByRole('button', { name: 'Pay Now' }).click()
  await expect(page, 'a new top-up is a new checkout').toHaveURL(/\/test-checkout\//)
  expect(page.url()).not.toBe(urlOf(lost()))
  expect(keysOf(requests, '/wallet/credit/checkout').at(-1)).not.toBe(first)
})

test('another amount is another top-up', async ({ page, visit, seeds }) => {
  await visit('/billing', { as: await seeds.hobby() })
  await refuse(page, 'post', '/wallet/credit/checkout', 503, 'Payments are not set up.')
  const requests = new Requests(page)
  for (const amount of ['$5', '$25']) {
    await page.getByRole('button', { name: amount, exact: true }).click()
    await page.getByRole('button', { name: 'Pay Now' }).click()
    await expect(page.getByRole('button', { name: 'Pay Now' })).toBeEnabled()
  }
  expect(new Set(keysOf(requests, '/wallet/credit/checkout')).size).toBe(2)
})

test('a team whose answer got lost is the same one when it is tried again', async ({
  page,
  visit,
  seeds,
}) => {
  await visit('/create-team', { as: await seeds.newcomer('founder') })
  const requests = new Requests(page)
  const lost = await loseAnswer(page, /\/api\/teams\/checkout/)
  await page.getByRole('main').getByRole('button', { name: 'Upgrade to Pro', exact: true }).click()
  const dialog = page.getByRole('dialog', { name: 'Team Details' })
  await dialog.getByLabel('Team Name').fill('Twice')
  const submit = dialog.getByRole('button', { name: 'Upgrade to Pro for $100/mo' })
  await submit.click()
  await expect(dialog.getByText('Failed to create team checkout session')).toBeVisible()
  await submit.click()
  await expect(page).toHaveURL(urlOf(lost()))
  const [first, second] = keysOf(requests, '/teams/checkout')
  expect(first).toMatch(/^[0-9a-f]{32}$/)
  expect(second).toBe(first)
})

test('a list that cannot be read says what the server said, or that there was none', async ({
  page,
  visit,
  seeds,
}) => {
  await refuse(page, 'get', '/ssh-keys', 429, 'Too many requests. Try again in 20 seconds.')
  await visit('/ssh-keys', { as: await seeds.hobby1() })
  const error = page.getByRole('alert')
  await expect(error).toContainText('Failed to fetch SSH keys')
  await expect(error).toContainText('Too many requests. Try again in 20 seconds.')
  await expectAccessible(page)
  await page.route('**/api/ssh-keys*', (route) => route.abort())
  await page.getByRole('button', { name: 'Try again' }).click()
  await expect(error).toContainText('Homeport cannot be reached. Check your connection.')
  await page.unrouteAll()
  await refuse(page, 'get', '/ssh-keys', 500)
  await page.getByRole('button', { name: 'Try again' }).click()
  await expect(error, 'a reason that holds no more').not.toContainText('cannot be reached')
  await expect(error).toContainText('Failed to fetch SSH keys')
  await page.unrouteAll()
  await page.getByRole('button', { name: 'Try again' }).click()
  await expect(error).toHaveCount(0)
  await expect(page.getByRole('table', { name: 'SSH Keys' })).toBeVisible()
})
