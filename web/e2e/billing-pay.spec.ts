// Section J of the checks: /billing, adding credit.
import type { Page } from '@playwright/test'
import { answer, hold, Requests, refuse } from './answers'
import { aTransaction } from './bodies'
import { expect, test } from './fixture'

const green = 'oklch(0.25 0.04 160)'
const amount = (page: Page) => page.getByLabel('Custom Amount (USD)')
const pay = (page: Page) => page.getByRole('button', { name: 'Pay Now' })

test('164 the section is titled Add Credit', async ({ page, visit, seeds }) => {
  await visit('/billing')
  await expect(
    page.getByRole('heading', { name: 'Add Credit (Sign in required)', exact: true }),
  ).toBeVisible()
  await visit('/billing', { as: await seeds.hobby1() })
  await expect(page.getByRole('heading', { name: 'Add Credit', exact: true })).toBeVisible()
})

test('165 the quick buttons set the amount', async ({ page, visit, seeds }) => {
  await visit('/billing', { as: await seeds.hobby1() })
  for (const dollars of ['5', '25', '100', '1000']) {
    await page.getByRole('button', { name: `$${dollars}`, exact: true }).click()
    await expect(amount(page)).toHaveValue(dollars)
  }
})

test('166 the custom amount is a number of cents', async ({ page, visit, seeds }) => {
  await visit('/billing', { as: await seeds.hobby1() })
  await expect(amount(page)).toHaveAttribute('type', 'number')
  await expect(amount(page)).toHaveAttribute('min', '0.01')
  await expect(amount(page)).toHaveAttribute('step', '0.01')
  await expect(amount(page)).toHaveAttribute('placeholder', 'Custom amount')
})

test('167 Pay Now is disabled when empty, busy or signed out', async ({ page, visit, seeds }) => {
  await visit('/billing')
  await expect(pay(page)).toBeDisabled()
  await visit('/billing', { as: await seeds.hobby1() })
  await expect(pay(page)).toBeDisabled()
  await amount(page).fill('5')
  await expect(pay(page)).toBeEnabled()
  await amount(page).fill('')
  await expect(pay(page)).toBeDisabled()
  const requests = new Requests(page)
  await refuse(page, 'post', '/wallet/credit/checkout', 503)
  const release = await hold(page, 'post', '/wallet/credit/checkout')
  await amount(page).fill('5')
  await pay(page).click()
  const busy = page.getByRole('button', { name: 'Processing...' })
  await expect(busy).toBeDisabled()
  await amount(page).press('Enter')
  release()
  await expect(pay(page)).toBeEnabled()
  expect(requests.to('post', '/wallet/credit/checkout')).toHaveLength(1)
})

test('168 only an amount above zero is sent, and the browser goes to the checkout', async ({
  page,
  visit,
  seeds,
}) => {
  const h1 = await seeds.hobby1()
  const requests = new Requests(page)
  await visit('/billing', { as: h1 })
  for (const text of ['0', '-5', 'abc', '0.00']) {
    await amount(page).fill('')
    await amount(page).pressSequentially(text)
    await amount(page).press('Enter')
    if (await pay(page).isEnabled()) await pay(page).click()
  }
  await amount(page).fill('12.34')
  expect(requests.to('post', '/wallet/credit/checkout')).toHaveLength(0)
  await pay(page).click()
  await expect(page).toHaveURL(/\/test-checkout\//)
  await expect(page.getByText('$12.34').first()).toBeVisible()
  const sent = requests.to('post', '/wallet/credit/checkout')
  expect(sent).toHaveLength(1)
  expect(new URL(sent[0]?.url() ?? '').search).toBe(`?team_id=${h1.teamId}`)
  expect(sent[0]?.postDataJSON()).toEqual({ amount: 12.34 })
})

test('168a without a selected team nothing is sent', async ({ page, visit, seeds }) => {
  const release = await hold(page, 'get', '/user/info')
  const requests = new Requests(page)
  await visit('/billing', { as: await seeds.hobby1() })
  await amount(page).fill('5')
  await pay(page).click()
  await amount(page).press('Enter')
  await expect(pay(page)).toBeEnabled()
  release()
  await expect(page.getByRole('cell', { name: '+$10.00' })).toBeVisible()
  expect(requests.to('post', '/wallet/credit/checkout')).toHaveLength(0)
})

test('169 a refused checkout is alerted and can be tried again', async ({ page, visit, seeds }) => {
  await visit('/billing', { as: await seeds.hobby1() })
  await refuse(page, 'post', '/wallet/credit/checkout', 422, 'The minimum payment is $0.50.')
  await amount(page).fill('0.2')
  await pay(page).click()
  await expect(page.getByRole('alert').filter({ hasText: 'The minimum payment is $0.50.' })).toBeVisible()
  await expect(pay(page)).toBeEnabled()
  await refuse(page, 'post', '/wallet/credit/checkout', 500)
  await pay(page).click()
  await expect(page.getByRole('alert').filter({ hasText: 'Failed to create checkout session' })).toBeVisible()
  await expect(pay(page)).toBeEnabled()
})

test('169 the real server refuses too much, and its words are shown', async ({ page, visit, seeds }) => {
  await visit('/billing', { as: await seeds.hobby1() })
  await amount(page).fill('10000.01')
  const answered = page.waitForResponse((r) => r.url().includes('/wallet/credit/checkout'))
  await pay(page).click()
  const { detail } = await (await answered).json()
  await expect(page.getByRole('alert').filter({ hasText: detail })).toBeVisible()
})

test('170 a visitor can only look', async ({ page, visit }) => {
  await visit('/billing')
  for (const name of ['Refresh', '$5', '$25', '$100', '$1000', 'Pay Now', 'Export CSV']) {
    const button = page.getByRole('button', { name, exact: true })
    await expect(button).toBeDisabled()
    await expect(button).toHaveAttribute('title', /^Sign in to /)
  }
  await expect(amount(page)).toBeDisabled()
  await expect(page.getByText('No credit transactions yet')).toBeVisible()
})

test('178 a completed test checkout raises the balance and shows a green box', async ({
  page,
  visit,
  seeds,
}) => {
  await visit('/billing', { as: await seeds.newcomer('payer') })
  const card = page.locator('section').filter({ has: page.getByRole('heading', { name: 'Wallet Balance' }) })
  await expect(card.getByText('$0.00', { exact: true })).toBeVisible()
  await page.getByRole('button', { name: '$25', exact: true }).click()
  await pay(page).click()
  await page.getByRole('button', { name: /^Pay/ }).click()
  const box = page.getByRole('status').filter({ hasText: 'the credit is in your wallet' })
  await expect(box).toBeVisible()
  await expect(box).toHaveCSS('background-color', green)
  await expect(box.getByRole('link', { name: 'Create New Instance' })).toHaveAttribute('href', '/create')
  await expect(card.getByText('$25.00', { exact: true })).toBeVisible()
  await expect(page.getByRole('cell', { name: '+$25.00' })).toBeVisible()
  await expect(page).toHaveURL(/\/billing$/)
})

test('178 a cancelled checkout charges nothing and says so', async ({ page, visit, seeds }) => {
  await visit('/billing', { as: await seeds.hobby1() })
  await page.getByRole('button', { name: '$5', exact: true }).click()
  await pay(page).click()
  await page.getByRole('button', { name: /^Cancel/ }).click()
  await expect(page.getByText('The payment was cancelled. Nothing was charged.')).toBeVisible()
  await expect(page).toHaveURL(/\/billing$/)
  await expect(page.getByRole('cell', { name: '+$10.00' })).toBeVisible()
})

test('178 an earlier credit is not taken for the one just paid', async ({ page, visit, seeds, homeport }) => {
  let paid = false
  const earlier = aTransaction({ id: 'c1', amount: 5 })
  const later = aTransaction({ id: 'c2', amount: 25, created_at: new Date().toISOString() })
  await answer(page, 'get', '/wallet/transactions', () => (paid ? [later, earlier] : [earlier]))
  await answer(page, 'post', '/wallet/credit/checkout', {
    checkout_url: `${homeport.url}/billing?checkout=success`,
  })
  await page.clock.install()
  await visit('/billing', { as: await seeds.hobby1() })
  await expect(page.getByRole('cell', { name: '+$5.00' })).toBeVisible()
  await page.getByRole('button', { name: '$25', exact: true }).click()
  await pay(page).click()
  await expect(page.getByText('Payment received. The credit appears within a minute.')).toBeVisible()
  await page.clock.runFor(9000)
  await expect(page.getByText('Payment received. The credit appears within a minute.')).toBeVisible()
  await expect(page.getByText('the credit is in your wallet')).toBeHidden()
  paid = true
  await page.clock.runFor(3000)
  await expect(page.getByText('the credit is in your wallet')).toBeVisible()
})

test('the Back button of the browser gives a usable page back', async ({ page, visit, seeds, homeport }) => {
  await answer(page, 'post', '/wallet/credit/checkout', { checkout_url: `${homeport.url}/billing#stay` })
  await visit('/billing', { as: await seeds.hobby1() })
  await amount(page).fill('5')
  await pay(page).click()
  await expect(page.getByRole('button', { name: 'Processing...' })).toBeDisabled()
  await page.evaluate(() => dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true })))
  await expect(pay(page)).toBeEnabled()
  await expect(amount(page)).toHaveValue('5')
})
