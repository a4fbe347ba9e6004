// Section A of the checks: the read-only banner.
import { expect, test } from './fixture'
import { follow, memberRoutes, openRoutes, readOnly } from './routes'

const sidebar = { name: 'Main' } as const

test('9 a visitor is told on every page that it is read-only', async ({ page, visit }) => {
  await visit('/auth')
  for (const path of openRoutes) {
    await follow(page, path)
    await expect(page.getByText(readOnly), path).toBeVisible()
    await page.setViewportSize({ width: 390, height: 844 })
    await expect(page.getByText(readOnly), `${path} on a phone`).toBeVisible()
    await page.setViewportSize({ width: 1440, height: 900 })
  }
})

test('10 on a narrow screen the banner leads to the sign-in page, on a wide one the sidebar does', async ({
  page,
  visit,
}) => {
  const button = page.getByRole('button', { name: 'Sign In / Create Account' })
  await visit('/pods', { width: 'D' })
  await expect(page.getByText(readOnly)).toBeVisible()
  await expect(button).toBeHidden()
  await visit('/pods', { width: 'M' })
  await button.click()
  await expect(page).toHaveURL(/\/auth(\?|$)/)
  await expect(page.getByLabel('Email')).toBeVisible()
})

test('11 there is no banner on /auth, and none for somebody signed in', async ({ page, visit, seeds }) => {
  for (const width of ['D', 'M'] as const) {
    await visit('/auth', { width })
    await expect(page.getByLabel('Email')).toBeVisible()
    await expect(page.getByText(readOnly)).toHaveCount(0)
    await expect(page.getByRole('button', { name: 'Sign In / Create Account' })).toHaveCount(0)
  }
  await visit('/home', { as: await seeds.hobby1() })
  for (const path of memberRoutes) {
    await follow(page, path)
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
    if (path !== '/home') await expect(page.getByRole('navigation', sidebar)).toBeVisible()
    await expect(page.getByText(readOnly), path).toHaveCount(0)
    await page.setViewportSize({ width: 390, height: 844 })
    await expect(page.getByText(readOnly), `${path} on a phone`).toHaveCount(0)
    await page.setViewportSize({ width: 1440, height: 900 })
  }
})
