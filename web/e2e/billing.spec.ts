// Section J of the checks: /billing, its head, its messages and the balance.
import type { Page } from '@playwright/test'
import { answer, hold, Requests, refuse } from './answers'
import type { UserInfo } from './client'
import { expect, test } from './fixture'

const red = 'oklch(0.255 0.06 22)'
const balanceCard = (page: Page) =>
  page.locator('section').filter({ has: page.getByRole('heading', { name: 'Wallet Balance' }) })
const balance = { balance: 241.07, spending_per_hour: 2.95, last_updated: '2026-11-21T10:00:00Z' }

test('158 heading and subtitle say who may do what', async ({ page, visit, seeds }) => {
  await visit('/billing')
  await expect(page.getByRole('heading', { level: 1, name: 'Billing & Wallet' })).toBeVisible()
  await expect(page.getByText('View billing information (read-only mode)')).toBeVisible()
  await visit('/billing', { as: (await seeds.pro()).admin })
  await expect(page.getByRole('heading', { level: 1, name: 'Billing & Wallet' })).toBeVisible()
  await expect(page.getByText('Manage your wallet balance and view transaction history')).toBeVisible()
})

test('159 team_id and subscribe select that team and leave the address', async ({ page, visit, seeds }) => {
  const { admin, id, name } = await seeds.pro()
  const { personal_team } = await admin.get<UserInfo>('/user/info')
  const release = await hold(page, 'get', '/user/info')
  await visit(`/billing?team_id=${id}&subscribe=success&tab=pods`, { as: admin, team: personal_team.id })
  await expect(page.getByText('Switching to your new team...')).toBeVisible()
  const requests = new Requests(page)
  release()
  await expect(page).toHaveURL(/\/billing\?tab=pods$/)
  await expect(page.getByText('Switching to your new team...')).toBeHidden()
  await expect(page.getByRole('button', { name: new RegExp(name) })).toBeVisible()
  await expect(page.getByRole('status').filter({ hasText: 'Your team is on Pro.' })).toBeVisible()
  await expect.poll(() => requests.to('get', '/wallet/transactions').at(-1)?.url()).toContain(id)
  const cookies = await page.context().cookies()
  expect(cookies.find((cookie) => cookie.name === 'homeport-team')?.value).toBe(id)
})

test('160 a team that comes after 2 s is selected then', async ({ page, visit, seeds }) => {
  const { admin, id, name } = await seeds.pro()
  const info = await admin.get<UserInfo>('/user/info')
  let come = false
  await answer(page, 'get', '/user/info', () => ({
    ...info,
    teams: info.teams.filter((team) => come || team.id !== id),
  }))
  await page.clock.install()
  await visit(`/billing?team_id=${id}&subscribe=success`, { as: admin, team: info.personal_team.id })
  await expect(page.getByText('Switching to your new team...')).toBeVisible()
  await expect(page.getByRole('button', { name: new RegExp(info.personal_team.name) })).toBeVisible()
  come = true
  await page.clock.runFor(2000)
  await expect(page.getByRole('button', { name: new RegExp(name) })).toBeVisible()
  await expect(page.getByText('Switching to your new team...')).toBeHidden()
  await expect(page).toHaveURL(/\/billing$/)
})

test('160 a team that never comes is given up after 30 s', async ({ page, visit, seeds }) => {
  await page.clock.install()
  const requests = new Requests(page)
  const h1 = await seeds.hobby1()
  await visit('/billing?team_id=7ea00000-aaaa-4aaa-8aaa-000000000002&tab=storage', { as: h1 })
  await expect(page.getByText('Switching to your new team...')).toBeVisible()
  const problem = page.getByRole('alert').filter({ hasText: 'Your new team is not there yet.' })
  await expect(async () => {
    await page.clock.runFor(2000)
    await expect(problem).toBeVisible({ timeout: 200 })
  }).toPass({ timeout: 40_000 })
  // Asked every 2 s for 30 s, and not once more.
  expect(requests.to('get', '/user/info').length).toBeGreaterThanOrEqual(14)
  expect(requests.to('get', '/user/info').length).toBeLessThanOrEqual(16)
  await expect(page).toHaveURL(/\/billing\?tab=storage$/)
})

test('161 Refresh reads balance, transactions, pods and volumes anew', async ({ page, visit, seeds }) => {
  const requests = new Requests(page)
  const button = page.getByRole('button', { name: 'Refresh', exact: true })
  await visit('/billing')
  await expect(button).toBeDisabled()
  await visit('/billing', { as: await seeds.hobby1() })
  await expect(button).toBeEnabled()
  // The shell's own lists follow the page's; what comes from now on is the button's.
  await expect.poll(() => requests.to('get', '/ssh-keys').length).toBe(1)
  const paths = ['/wallet/balance', '/wallet/transactions', '/pods', '/volumes'] as const
  const counts = () => paths.map((path) => requests.to('get', path).length)
  const before = counts()
  const release = await hold(page, 'get', '/volumes')
  await button.click()
  await expect(button).toBeDisabled()
  await expect(button.locator('svg.animate-spin')).toBeVisible()
  await expect.poll(counts).toEqual(before.map((count) => count + 1))
  release()
  await expect(button).toBeEnabled()
  await expect(button.locator('svg.animate-spin')).toHaveCount(0)
  expect(counts()).toEqual(before.map((count) => count + 1))
})

test('161 Refresh is busy while the first load is under way', async ({ page, visit, seeds }) => {
  const release = await hold(page, 'get', '/wallet/transactions')
  await visit('/billing', { as: await seeds.hobby1() })
  const button = page.getByRole('button', { name: 'Refresh', exact: true })
  await expect(button).toBeDisabled()
  await expect(button.locator('svg.animate-spin')).toBeVisible()
  release()
  await expect(button).toBeEnabled()
})

test('162 the balance card: figure, time, zero, skeleton and no data', async ({ page, visit, seeds }) => {
  const h1 = await seeds.hobby1()
  const card = balanceCard(page)
  await answer(page, 'get', '/wallet/balance', balance)
  const release = await hold(page, 'get', '/wallet/balance')
  await visit('/billing', { as: h1 })
  await expect(card.locator('.animate-beat')).toBeVisible()
  await expect(card).not.toContainText('$')
  await expect(card).not.toContainText('No wallet data available')
  release()
  await expect(card.getByText('$241.07', { exact: true })).toBeVisible()
  await expect(card.getByText(/^Last updated .*2026/)).toBeVisible()
  await expect(card.locator('time')).toHaveAttribute('datetime', '2026-11-21T10:00:00Z')
  await page.route('**/api/wallet/balance?*', (route) =>
    route.fulfill({ json: { balance: null, spending_per_hour: 0, last_updated: balance.last_updated } }),
  )
  await page.getByRole('button', { name: 'Refresh', exact: true }).click()
  await expect(card.getByText('$0.00', { exact: true })).toBeVisible()
  await page.evaluate(() => {
    for (const key of Object.keys(localStorage))
      if (key.startsWith('homeport-wallet')) localStorage.removeItem(key)
  })
  await page.unroute('**/api/wallet/balance?*')
  await refuse(page, 'get', '/wallet/balance', 500)
  await page.reload()
  await expect(card.getByText('No wallet data available')).toBeVisible()
  await expect(card.locator('.animate-beat')).toHaveCount(0)
})

test('162 nothing is called missing before the user is known', async ({ page, visit, seeds }) => {
  const release = await hold(page, 'get', '/user/info')
  await visit('/billing', { as: await seeds.hobby1() })
  await expect(balanceCard(page).locator('.animate-beat')).toBeVisible()
  await expect(page.getByText('No wallet data available')).toBeHidden()
  await expect(page.getByText('No credit transactions yet')).toBeHidden()
  await expect(page.getByRole('button', { name: 'Refresh', exact: true })).toBeDisabled()
  release()
  await expect(balanceCard(page).getByText('$10.00', { exact: true })).toBeVisible()
})

test('163 wallet errors stand in a red box', async ({ page, visit, seeds }) => {
  await refuse(page, 'get', '/wallet/balance', 500)
  await refuse(page, 'get', '/wallet/transactions', 503, 'Try later.')
  await visit('/billing', { as: await seeds.hobby1() })
  for (const text of ['Failed to fetch wallet balance', 'Failed to fetch transaction history']) {
    const box = page.getByRole('main').getByRole('alert').filter({ hasText: text })
    await expect(box).toBeVisible()
    await expect(box).toHaveCSS('background-color', red)
  }
  await expect(page.getByText('No credit transactions yet')).toBeHidden()
})

test('163 a failed refresh keeps what was there, and trying again mends it', async ({
  page,
  visit,
  seeds,
}) => {
  let failing = false
  await visit('/billing', { as: await seeds.hobby1() })
  await expect(page.getByRole('cell', { name: '+$10.00' })).toBeVisible()
  // The end of the page comes later, and has buttons of its own to try again.
  for (const later of ['Save a card', 'Breakdown']) {
    await expect(page.getByRole('button', { name: later }).first()).toBeVisible()
  }
  await page.route('**/api/wallet/*?*', (route) =>
    failing ? route.fulfill({ status: 500, json: {} }) : route.fallback(),
  )
  failing = true
  await page.getByRole('button', { name: 'Refresh', exact: true }).click()
  const box = page.getByRole('alert').filter({ hasText: 'Failed to fetch transaction history' })
  await expect(box).toBeVisible()
  await expect(page.getByRole('cell', { name: '+$10.00' })).toBeVisible()
  await expect(balanceCard(page).getByText('$10.00', { exact: true })).toBeVisible()
  failing = false
  await box.getByRole('button', { name: 'Try again' }).click()
  await expect(page.getByRole('alert')).toHaveCount(0)
})
