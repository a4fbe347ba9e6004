// Beyond the checks: the ways of money while events come twice, late and in any
// order. On a server of its own.
import { Client, type Transaction, type UserInfo, until } from './client'
import { enter, expect, type Homeport, newHomeport, test } from './fixture'

test.describe.configure({ mode: 'serial' })

let homeport: Homeport

test.beforeAll(async () => {
  homeport = await newHomeport()
  await homeport.start()
  const answer = await fetch(`${homeport.url}/dev/payments`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ chaos: { duplicate: true, reorder: true, delay_seconds: 2 } }),
  })
  expect(answer.ok).toBe(true)
})

test.afterAll(async () => homeport.destroy())

/** Both looks at the books find nothing. */
function expectSoundBooks(): void {
  expect(JSON.parse(homeport.command('ledger', 'verify', '--json'))).toMatchObject({ ok: true })
  const day = new Date().toISOString().slice(0, 10)
  const compared = JSON.parse(homeport.command('ledger', 'reconcile', '--json', '--day', day))
  expect(compared).toMatchObject({ ok: true, problems: [] })
}

test('a top-up is credited once', async ({ page }) => {
  const client = await Client.signIn(homeport, 'payer@example.com')
  await enter(page, homeport, client)
  for (const times of [1, 2]) {
    await page.goto(`${homeport.url}/billing`)
    await page.getByRole('button', { name: '$25', exact: true }).click()
    await page.getByRole('button', { name: 'Pay Now' }).click()
    await expect(page).toHaveURL(/\/test-checkout\//)
    await page.locator('button[value="pay"]').click()
    await expect(page).toHaveURL(/\/billing/)
    await expect(page.getByText(/^Payment received/)).toBeVisible({ timeout: 20_000 })
    await until('the credit', async () => (await client.balance()).balance >= 25 * times)
  }
  await new Promise((done) => setTimeout(done, 3000)) // whatever comes late has come
  expect((await client.balance()).balance).toBe(50)
  const rows = await client.get<Transaction[]>(`/wallet/transactions?team_id=${client.teamId}&limit=1000`)
  expect(rows.map((row) => [row.transaction_type, row.amount])).toEqual([
    ['credit', 25],
    ['credit', 25],
  ])
  expectSoundBooks()
})

test('an upgrade to a Pro team of 3 makes one team', async ({ page }) => {
  const client = await Client.signIn(homeport, 'founder@example.com')
  await enter(page, homeport, client)
  await page.goto(`${homeport.url}/create-team`)
  await page.getByRole('main').getByRole('button', { name: 'Upgrade to Pro', exact: true }).click()
  const dialog = page.getByRole('dialog', { name: 'Team Details' })
  await dialog.getByLabel('Team Name').fill('North Quay')
  await dialog.getByLabel('Number of Team Members').fill('3')
  await dialog.getByRole('button', { name: 'Upgrade to Pro for $300/mo' }).click()
  await page.getByRole('button', { name: 'Pay $300.00 per month' }).click()
  await expect(page.getByText('Your team is on Pro. Welcome aboard.')).toBeVisible({ timeout: 20_000 })
  await expect(page).toHaveURL(/\/billing$/)
  await new Promise((done) => setTimeout(done, 3000)) // whatever comes late has come
  const { teams } = await client.get<UserInfo>('/user/info')
  expect(teams.filter((team) => team.name === 'North Quay')).toHaveLength(1)
  expect(teams.find((team) => team.name === 'North Quay')).toMatchObject({ plan: 'pro', max_members: 3 })
  const cookies = await page.context().cookies()
  expect(cookies.find((cookie) => cookie.name === 'homeport-team')?.value).toBe(
    teams.find((team) => team.name === 'North Quay')?.id,
  )
  expectSoundBooks()
})
