// Section C of the checks: the wallet box of the shell.
import type { Page } from '@playwright/test'
import { answer, hold, Requests, refuse } from './answers'
import { aBalance } from './bodies'
import type { Balance } from './client'
import { expect, test } from './fixture'
import { expectNoOverflow } from './looks'

const wallet = (page: Page) => page.getByRole('region', { name: 'Wallet', exact: true })
const refresh = (page: Page) => page.getByRole('button', { name: 'Refresh wallet data' })
const calculating = (page: Page) => wallet(page).getByText('Calculating...', { exact: true })

/** Answers with the balance that `now` holds at the moment of each reading. */
async function balances(page: Page, first: Balance): Promise<{ now: Balance }> {
  const state = { now: first }
  await answer(page, 'get', '/wallet/balance', () => state.now)
  return state
}

test('50 the balance has two decimals whatever it is', async ({ page, visit, seeds }) => {
  const { admin } = await seeds.pro()
  await visit('/ssh-keys', { as: admin })
  await expect(wallet(page).getByText('$241.07', { exact: true })).toBeVisible()
  const state = await balances(page, aBalance({ balance: 0.005 }))
  for (const [balance, text] of [
    [0.005, '$0.01'],
    [0, '$0.00'],
    [7, '$7.00'],
    [1234567.891, '$1,234,567.89'],
  ] as const) {
    state.now = aBalance({ balance })
    await refresh(page).click()
    await expect(wallet(page).getByText(text, { exact: true })).toBeVisible()
  }
  await expectNoOverflow(page)
})

test('51 the refresh button asks for the balance of the team with its estimates', async ({
  page,
  visit,
  seeds,
}) => {
  const { admin, id } = await seeds.pro()
  await visit('/ssh-keys', { as: admin })
  await expect(wallet(page).getByText('$241.07')).toBeVisible()
  await expect(refresh(page)).toHaveAttribute('title', 'Refresh wallet data')
  const asked = page.waitForRequest(/\/api\/wallet\/balance\?/)
  await refresh(page).click()
  const url = new URL((await asked).url())
  expect(Object.fromEntries(url.searchParams)).toEqual({ team_id: id, include_estimates: 'true' })
  await expect(refresh(page)).toBeFocused()
})

test('52 + Add Funds leads to billing', async ({ page, visit, seeds }) => {
  await visit('/ssh-keys', { as: (await seeds.pro()).admin })
  await wallet(page).getByRole('button', { name: '+ Add Funds' }).click()
  await expect(page).toHaveURL(/\/billing$/)
  await expect(page.getByRole('heading', { level: 1, name: 'Billing & Wallet' })).toBeVisible()
})

test('53 the spending has three decimals', async ({ page, visit, seeds }) => {
  await balances(page, aBalance({ spending_per_hour: 2.95 }))
  await visit('/ssh-keys', { as: (await seeds.pro()).admin })
  await expect(wallet(page).getByText('Spending $2.950/hr', { exact: true })).toBeVisible()
})

test('54 the time left in months, days, hours and minutes', async ({ page, visit, seeds }) => {
  const state = await balances(page, aBalance({ spending_per_hour: 2.95 }))
  await visit('/ssh-keys', { as: (await seeds.pro()).admin })
  for (const [balance, spending, text] of [
    [241.07, 2.95, '3d 9h left'],
    [10, 3, '3h 20m left'],
    [0.5, 1, '30m left'],
    [0, 1, '<0h'],
    [1000, 1, '1mo 11d'],
    [720, 1, '30d 0h left'],
  ] as const) {
    state.now = aBalance({ balance, spending_per_hour: spending })
    await refresh(page).click()
    await expect(wallet(page).getByText(text, { exact: true })).toBeVisible()
  }
})

test('55 nothing spent: a rate of zero and no time left', async ({ page, visit, seeds }) => {
  await visit('/ssh-keys', { as: await seeds.hobby() })
  await expect(wallet(page).getByText('Spending $0.000/hr', { exact: true })).toBeVisible()
  await expect(wallet(page).getByText(/left|<0h|mo /)).toHaveCount(0)
})

test('56 Calculating... stands there for the first reading only', async ({ page, visit, seeds }) => {
  await balances(page, aBalance({ spending_per_hour: 2.95 }))
  const first = await hold(page, 'get', '/wallet/balance')
  await page.clock.install()
  await visit('/ssh-keys', { as: (await seeds.pro()).admin })
  await expect(calculating(page)).toBeVisible()
  await expect(wallet(page)).not.toContainText('$')
  first()
  await expect(wallet(page).getByText('3d 9h left')).toBeVisible()
  await expect(calculating(page)).toHaveCount(0)
  const second = await hold(page, 'get', '/wallet/balance')
  const requests = new Requests(page)
  await page.clock.runFor(30_000)
  await expect.poll(() => requests.to('get', '/wallet/balance').length).toBe(1)
  await expect(calculating(page)).toHaveCount(0)
  await expect(wallet(page).getByText('$241.07', { exact: true })).toBeVisible()
  second()
})

test('57 the balance is read every 30 s, unless the page is hidden', async ({ page, visit, seeds }) => {
  await balances(page, aBalance({ spending_per_hour: 2.95 }))
  await page.clock.install()
  await visit('/ssh-keys', { as: (await seeds.pro()).admin })
  await expect(wallet(page).getByText('$241.07')).toBeVisible()
  const readings = new Requests(page)
  await page.clock.runFor(30_000)
  await expect.poll(() => readings.to('get', '/wallet/balance').length).toBe(1)

  const becomes = (state: 'hidden' | 'visible') =>
    page.evaluate((value) => {
      Object.defineProperty(document, 'visibilityState', { value, configurable: true })
      document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))
    }, state)
  await becomes('hidden')
  await page.clock.runFor(120_000)
  await becomes('visible')
  await page.clock.runFor(30_000)
  // All that came while it was hidden would be counted here as well.
  await expect.poll(() => readings.to('get', '/wallet/balance').length).toBe(2)
})

test('58 a failing balance leaves the old one on stage', async ({ page, visit, seeds }) => {
  await balances(page, aBalance({ spending_per_hour: 2.95 }))
  await visit('/ssh-keys', { as: (await seeds.pro()).admin })
  await expect(wallet(page).getByText('$241.07')).toBeVisible()
  await refuse(page, 'get', '/wallet/balance', 500, 'down')
  const requests = new Requests(page)
  await refresh(page).click()
  await expect.poll(() => requests.to('get', '/wallet/balance').length).toBe(2)
  await expect(refresh(page)).toHaveAttribute('aria-busy', 'false')
  await expect(wallet(page).getByText('$241.07', { exact: true })).toBeVisible()
  await expect(wallet(page).getByText('3d 9h left')).toBeVisible()
  await expect(page.getByRole('alert')).toHaveCount(0)
})

test('a balance that was never read says so, also while it is tried again', async ({
  page,
  visit,
  seeds,
}) => {
  await refuse(page, 'get', '/wallet/balance', 500, 'down')
  await page.clock.install()
  await visit('/ssh-keys', { as: (await seeds.pro()).admin })
  const error = wallet(page).getByText('Failed to fetch wallet balance', { exact: true })
  await expect(error).toBeVisible()
  await expect(wallet(page)).not.toContainText('$0.00')
  const release = await hold(page, 'get', '/wallet/balance')
  const requests = new Requests(page)
  await page.clock.runFor(30_000)
  await expect.poll(() => requests.to('get', '/wallet/balance').length).toBe(1)
  await expect(error).toBeVisible()
  await expect(calculating(page)).toHaveCount(0)
  await balances(page, aBalance({ balance: 3, spending_per_hour: 1 }))
  release()
  await refresh(page).click()
  await expect(wallet(page).getByText('3h 0m left')).toBeVisible()
  await expect(error).toHaveCount(0)
})

test('59 a visitor sees $0.00 and may not refresh it', async ({ page, visit }) => {
  await visit('/pods')
  await expect(wallet(page).getByText('$0.00', { exact: true })).toBeVisible()
  const button = wallet(page).getByRole('button', { name: 'Sign in to refresh wallet data' })
  await expect(button).toBeDisabled()
  await expect(button).toHaveAttribute('title', 'Sign in to refresh wallet data')
  await expect(wallet(page).getByText(/Spending|Calculating/)).toHaveCount(0)
})

test('60 a visitor is invited to sign in where others have their team', async ({ page, visit }) => {
  await visit('/pods?tab=all')
  const side = page.getByRole('complementary').filter({ has: wallet(page) })
  await expect(side.getByText("Create an account to access Homeport's full functionality.")).toBeVisible()
  await expect(side.getByRole('button', { name: 'Sign Out' })).toHaveCount(0)
  await expect(side.getByRole('button', { name: /^Team/ })).toHaveCount(0)
  await expect(side.getByText(/Signed in as|Upgrade to Pro/)).toHaveCount(0)
  await side.getByRole('button', { name: 'Sign In', exact: true }).click()
  await expect(page).toHaveURL((url) => url.pathname === '/auth')
  expect(new URL(page.url()).searchParams.get('redirect')).toBe('/pods?tab=all')
})

test('65 the last balance is there at once after a reload within five minutes', async ({
  page,
  visit,
  seeds,
}) => {
  await balances(page, aBalance({ balance: 77.7, spending_per_hour: 1 }))
  await page.clock.install()
  await visit('/ssh-keys', { as: (await seeds.pro()).admin })
  await expect(wallet(page).getByText('$77.70')).toBeVisible()
  const requests = new Requests(page)
  const release = await hold(page, 'get', '/wallet/balance')
  await page.clock.fastForward(4 * 60_000)
  await page.reload()
  await expect(wallet(page).getByText('$77.70', { exact: true })).toBeVisible()
  await expect(wallet(page).getByText('3d 5h left')).toBeVisible()
  await expect.poll(() => requests.to('get', '/wallet/balance').length).toBeGreaterThan(0)
  await page.clock.fastForward(2 * 60_000)
  await page.reload()
  await expect(calculating(page)).toBeVisible()
  await expect(wallet(page).getByText('$77.70')).toHaveCount(0)
  release()
})
