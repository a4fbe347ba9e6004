// Section C of the checks: signing out, and the upgrade box.
import type { Page } from '@playwright/test'
import { expect, test } from './fixture'
import { readOnly } from './routes'

const upgrade = (page: Page) => page.getByRole('region', { name: 'Upgrade to Pro' })

/** The product's keys in the browser's storage. */
const stored = (page: Page) =>
  page.evaluate(() => Object.keys(localStorage).filter((key) => key.startsWith('homeport-')))

/** Clicks Sign Out and returns when the page has been loaded anew. */
async function signOut(page: Page): Promise<void> {
  await expect(page.getByRole('region', { name: 'Wallet' })).toContainText('Spending')
  expect(await stored(page)).not.toEqual([])
  const loaded = page.waitForEvent('load')
  await page.getByRole('button', { name: 'Sign Out' }).click()
  await loaded
}

async function expectVisitor(page: Page): Promise<void> {
  await expect(page.getByText(readOnly)).toBeVisible()
  await expect(page.getByRole('button', { name: 'Sign Out' })).toHaveCount(0)
  await expect(page.getByRole('button', { name: 'Sign in to refresh wallet data' })).toBeDisabled()
  expect(await stored(page)).toEqual([])
}

test('61 Sign Out ends the session, clears the storage and loads the page anew', async ({
  page,
  visit,
  seeds,
}) => {
  const person = await seeds.newcomer('leaver')
  await visit('/ssh-keys', { as: person })
  const asked = page.waitForResponse(/\/auth\/v1\/logout/)
  await signOut(page)
  expect((await asked).ok()).toBe(true)
  await expectVisitor(page)
  await expect(page).toHaveURL(/\/ssh-keys$/)
})

for (const [number, what] of [
  ['62', 'a refused sign-out'],
  ['62, too:', 'a sign-out that finds no server'],
] as const) {
  test(`${number} ${what} signs out here all the same`, async ({ page, visit, seeds }) => {
    await page.route(/\/auth\/v1\/logout/, (route) =>
      number === '62' ? route.fulfill({ status: 500, json: { code: 500, msg: 'down' } }) : route.abort(),
    )
    await visit('/ssh-keys', { as: await seeds.hobby() })
    await signOut(page)
    await expectVisitor(page)
  })
}

test('63 a Hobby team has the upgrade box, a Pro team has none', async ({ page, visit, seeds }) => {
  await visit('/ssh-keys', { as: await seeds.hobby() })
  await expect(upgrade(page)).toBeVisible()
  await upgrade(page).getByRole('link').click()
  await expect(page).toHaveURL(/\/create-team$/)
  const { admin, name } = await seeds.pro()
  await visit('/ssh-keys', { as: admin })
  await expect(page.getByRole('button', { name: `Team ${name} Pro` })).toBeVisible()
  await expect(upgrade(page)).toHaveCount(0)
})

test('64 the upgrade box, once closed, stays away for five hours', async ({ page, visit, seeds }) => {
  await page.clock.install()
  await visit('/ssh-keys', { as: await seeds.hobby() })
  const here = page.getByRole('button', { name: /^Team / })
  await upgrade(page).getByRole('button', { name: 'Close the upgrade box' }).click()
  await expect(upgrade(page)).toHaveCount(0)
  await page.reload()
  await expect(here).toBeVisible()
  await expect(upgrade(page)).toHaveCount(0)
  await page.clock.fastForward('04:59:00')
  await expect(upgrade(page)).toHaveCount(0)
  await page.reload()
  await expect(here).toBeVisible()
  await expect(upgrade(page)).toHaveCount(0)
  await page.clock.fastForward('02:00')
  await expect(upgrade(page)).toBeVisible()
  await page.reload()
  await expect(upgrade(page)).toBeVisible()
})
