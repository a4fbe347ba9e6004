// Section M of the checks: what the lists remember, and what they put back.
import type { Route } from '@playwright/test'
import { answer, hold, isTo, Requests } from './answers'
import { ago, aVolume, id } from './bodies'
import { expect, test } from './fixture'

test('201 a list is read again after 5 minutes, with its old rows in sight', async ({
  page,
  visit,
  seeds,
}) => {
  await page.clock.install()
  const requests = new Requests(page)
  const reads = () => requests.to('get', '/volumes').length
  const sidebar = page.getByRole('navigation')
  const row = page.getByRole('row', { name: /datasets/ })
  await visit('/storage', { as: await seeds.hobby1() })
  await expect(row).toBeVisible()
  expect(reads()).toBe(1)

  await page.clock.fastForward(4 * 60_000)
  for (const [link, title] of [
    ['Pods', 'Pods'],
    ['Storage', 'Storage'],
  ] as const) {
    await sidebar.getByRole('link', { name: link }).click()
    await expect(page.getByRole('heading', { level: 1, name: title })).toBeVisible()
    await page.clock.runFor(1000)
  }
  await expect(row).toBeVisible()
  expect(reads()).toBe(1)

  await sidebar.getByRole('link', { name: 'Pods' }).click()
  await expect(page.getByRole('heading', { level: 1, name: 'Pods' })).toBeVisible()
  const release = await hold(page, 'get', '/volumes') // before the page asks: it does so wherever it stands
  await page.clock.fastForward(61_000)
  await sidebar.getByRole('link', { name: 'Storage' }).click()
  await expect(row).toBeVisible()
  await expect.poll(reads).toBe(2)
  release()
  await page.clock.runFor(1000)
  await expect(row).toBeVisible()
  expect(reads()).toBe(2)
})

test('202 of two quick deletions the failed one alone comes back', async ({ page, visit, seeds }) => {
  const as = await seeds.hobby1()
  const all = ['newest', 'failing', 'leaving', 'oldest'].map((name, i) =>
    aVolume({ id: id(name), name, team_id: as.teamId, created_by: as.userId, created_at: ago(i * 100) }),
  )
  let rows = all
  await answer(page, 'get', '/volumes', () => rows)
  let failLater = () => {}
  const held = new Promise<void>((done) => {
    failLater = done
  })
  const remove = async (route: Route) => {
    if (!isTo(route.request(), 'delete', '/volumes/{id}')) return route.fallback()
    if (route.request().url().includes(id('failing'))) {
      await held
      return route.fulfill({ status: 409, json: { status: 409, detail: 'in use' } })
    }
    rows = rows.filter((volume) => !route.request().url().includes(volume.id))
    return route.fulfill({ status: 204 })
  }
  await page.route((url) => url.pathname.startsWith('/api/volumes/'), remove)
  await visit('/storage', { as })
  const names = page.getByRole('row').getByText(/^(newest|failing|leaving|oldest)$/)
  await expect(names).toHaveText(['newest', 'failing', 'leaving', 'oldest'])
  for (const name of ['failing', 'leaving']) {
    await page
      .getByRole('row', { name: new RegExp(name) })
      .getByRole('button', { name: /^Delete/ })
      .click()
    await page.getByRole('alertdialog').getByRole('button', { name: 'Delete' }).click()
    await expect(page.getByRole('row', { name: new RegExp(name) })).toHaveCount(0)
  }
  await expect(names).toHaveText(['newest', 'oldest'])
  const read = await hold(page, 'get', '/volumes') // it comes back from what the page knew
  failLater()
  await expect(page.getByRole('alert').filter({ hasText: 'Error deleting volume: in use' })).toBeVisible()
  await expect(names).toHaveText(['newest', 'failing', 'oldest'])
  read()
})
