// A new team from the dialog to the wallet, through the real test checkout.
import type { UserInfo } from './client'
import { expect, test } from './fixture'
import { expectNoOverflow } from './looks'

test('a team is paid for, after a declined card, and is the selected one on the way back', async ({
  page,
  visit,
  seeds,
}) => {
  const payer = await seeds.newcomer('founder')
  await visit('/create-team', { as: payer })
  await page.getByRole('main').getByRole('button', { name: 'Upgrade to Pro', exact: true }).click()
  const dialog = page.getByRole('dialog', { name: 'Team Details' })
  await dialog.getByLabel('Team Name').fill('North Quay')
  await dialog.getByLabel('Number of Team Members').fill('3')
  await dialog.getByRole('button', { name: 'Upgrade to Pro for $300/mo' }).click()

  await expect(page).toHaveURL(/\/test-checkout\/cs_test_/)
  await expect(page.getByRole('heading', { name: 'Homeport Pro' })).toBeVisible()
  await expect(page.getByText('North Quay')).toBeVisible()
  await expect(page.getByText('$300.00 per month', { exact: true })).toBeVisible()
  await expect(page.getByText('3 seats at $100.00, billed monthly on the same date.')).toBeVisible()
  await page.setViewportSize({ width: 390, height: 844 })
  await expectNoOverflow(page)
  await page.setViewportSize({ width: 1440, height: 900 })

  await page.getByRole('button', { name: 'Decline the card' }).click()
  await expect(page.getByRole('alert')).toHaveText('Your card was declined. Please try again.')
  await page.getByRole('button', { name: 'Pay $300.00 per month' }).click()

  await expect(page.getByText('Your team is on Pro. Welcome aboard.')).toBeVisible()
  await expect(page).toHaveURL(/\/billing$/)
  await expect(page.getByRole('button', { name: /North Quay\s*Pro/ })).toBeVisible()
  await expect(page.getByText('No credit transactions yet')).toBeVisible()
  const { teams } = await payer.get<UserInfo>('/user/info')
  expect(teams.find((each) => each.name === 'North Quay')).toMatchObject({
    plan: 'pro',
    max_members: 3,
    role: 'admin',
  })
  await page.reload()
  await expect(page.getByRole('button', { name: /North Quay\s*Pro/ })).toBeVisible()
  await page.goto('/teams')
  await expect(page.getByRole('main').getByText('North Quay').first()).toBeVisible()
  await expect(page.getByRole('main').getByText('1/3')).toBeVisible()
})

test('a cancelled team checkout leads back and makes no team', async ({ page, visit, seeds }) => {
  const client = await seeds.newcomer('wavering')
  await visit('/create-team', { as: client })
  await page.getByRole('main').getByRole('button', { name: 'Upgrade to Pro', exact: true }).click()
  const dialog = page.getByRole('dialog', { name: 'Team Details' })
  await dialog.getByLabel('Team Name').fill('Never')
  await dialog.getByRole('button', { name: 'Upgrade to Pro for $100/mo' }).click()
  await page.getByRole('button', { name: 'Cancel and go back' }).click()
  await expect(page).toHaveURL(/\/create-team$/)
  await expect(page.getByRole('heading', { name: 'Create a Team' })).toBeVisible()
  const { teams } = await client.get<UserInfo>('/user/info')
  expect(teams).toHaveLength(1)
})
