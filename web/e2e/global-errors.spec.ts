// Section A of the checks: errors that nobody expected.
import { expect, test } from './fixture'
import { Watch } from './looks'

test('16 a page that cannot be drawn says Application Error', async ({ page, visit, seeds }) => {
  const text = 'Something went wrong: the lamp went out. Please try refreshing the page.'
  // A browser that refuses what the pages ask of it while they draw: first only the page, then its frame too.
  await visit('/robots.txt', { as: await seeds.hobby1() })
  await page.addInitScript(() => {
    const real = window.matchMedia.bind(window)
    window.matchMedia = (query) => {
      if (location.pathname === '/pods') throw new Error('the lamp went out')
      return real(query)
    }
  })
  await page.goto('/pods')
  await expect(page.getByRole('heading', { level: 1, name: 'Application Error' })).toBeVisible()
  await expect(page.getByText(text)).toBeVisible()
  await expect(page).toHaveTitle(/Homeport/)
  await expect(page.getByRole('main')).toHaveCount(1)
  await page.getByRole('button', { name: 'Reload' }).click()
  await expect(page.getByText(text)).toBeVisible()
})

test('17 an error that nobody handled is logged, and the page stays as it is', async ({
  page,
  visit,
  seeds,
  homeport,
}) => {
  const watch = new Watch(page, homeport.url)
  await visit('/storage', { as: await seeds.hobby1() })
  await expect(page.getByText('datasets').first()).toBeVisible()
  const before = await page.getByRole('main').ariaSnapshot()
  await page.evaluate(() => {
    void Promise.reject(new Error('x'))
    setTimeout(() => {
      throw new Error('y')
    }, 0)
  })
  await expect
    .poll(() => watch.errors.filter((text) => /unhandled rejection.*\bx\b/s.test(text)).length)
    .toBe(1)
  await expect.poll(() => watch.errors.filter((text) => /unhandled error.*\by\b/s.test(text)).length).toBe(1)
  expect(watch.errors).toHaveLength(2) // logged once each, and not by the browser again
  expect(await page.getByRole('main').ariaSnapshot()).toBe(before)
  await expect(page.getByRole('alert')).toHaveCount(0)
  await expect(page.getByRole('status')).toHaveCount(0)
  await expect(page.getByRole('heading', { name: 'Application Error' })).toHaveCount(0)
})
