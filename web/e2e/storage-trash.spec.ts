// Section G of the checks, beyond the letter: the trash of /storage.
import type { Page } from '@playwright/test'
import { answer, Requests, refuse } from './answers'
import { ago, aVolume, id } from './bodies'
import type { Volume } from './client'
import { expect, test } from './fixture'

const trash = (page: Page) => page.getByRole('button', { name: 'Recently deleted' })
const row = (page: Page, name: string) =>
  page.getByRole('list', { name: 'Recently deleted' }).getByRole('listitem').filter({ hasText: name })
const question = (page: Page) => page.getByRole('alertdialog', { name: 'Restore Volume' })
const inAWeek = (text: string) => Date.parse(text) / 86_400_000 - Date.now() / 86_400_000

test('a deleted volume lies in the trash for a week and comes back', async ({ page, visit, seeds }) => {
  const as = await seeds.hobby()
  const made = await as.post<Volume>('/volumes', { name: 'undone', team_id: as.teamId })
  const requests = new Requests(page)
  await visit('/storage', { as })
  await page.getByRole('button', { name: 'Delete volume undone' }).click()
  await expect(page.getByRole('alertdialog')).toContainText('It can be restored for 7 days')
  await page.getByRole('alertdialog').getByRole('button', { name: 'Delete' }).click()
  await expect(page.getByText('No storage volumes yet')).toBeVisible()
  const deleted = () => requests.to('get', '/volumes').filter((r) => r.url().includes('deleted=true'))
  expect(deleted(), 'nobody looked yet').toEqual([])
  await trash(page).click()
  await expect(row(page, 'undone')).toContainText(made.id)
  await expect(row(page, 'undone')).toContainText('Can be restored until')
  const [kept] = await as.get<Volume[]>(`/volumes?team_id=${as.teamId}&deleted=true`)
  expect(inAWeek(kept?.purge_at ?? '')).toBeCloseTo(7, 1)
  await row(page, 'undone').getByRole('button', { name: 'Restore volume undone' }).click()
  await expect(question(page)).toContainText('It holds no data, so its time in the trash is free.')
  await question(page).getByRole('button', { name: 'Restore' }).click()
  await expect(page.getByRole('status')).toHaveText('undone is back.')
  await expect(page.getByRole('row', { name: /^undone/ })).toContainText('Available')
  await expect(row(page, 'undone')).toHaveCount(0)
  await as.delete(`/volumes/${made.id}?team_id=${as.teamId}`)
})

test('a full volume says what its restoring costs, and why it cannot be', async ({ page, visit, seeds }) => {
  const as = await seeds.hobby1()
  const team_id = as.teamId
  await page.route(/\/api\/volumes\?.*deleted=true/, (route) =>
    route.fulfill({
      json: [
        aVolume({
          id: id('7d'),
          team_id,
          name: 'old-run',
          deleted: true,
          deleted_at: ago(86_400),
          purge_at: ago(-6 * 86_400),
          created_by: as.userId,
        }),
      ],
    }),
  )
  await visit('/storage', { as, width: 'M' })
  await trash(page).click()
  await expect(row(page, 'old-run')).toContainText('123/500 GB')
  const detail = 'Hobby teams have one volume.'
  await refuse(page, 'post', '/volumes/{id}/restore', 403, detail)
  await row(page, 'old-run').getByRole('button', { name: 'Restore' }).click()
  await expect(question(page)).toContainText(/about \$0\.590[4-9]\./)
  await question(page).getByRole('button', { name: 'Restore' }).click()
  await expect(page.getByRole('alert')).toContainText('Failed to restore volume')
  await expect(page.getByRole('alert')).toContainText(detail)
  await expect(row(page, 'old-run')).toBeVisible()
})

test('an empty trash says so, an unread one can be tried again', async ({ page, visit, seeds }) => {
  let failing = true
  const as = await seeds.hobby1()
  await answer(page, 'get', '/volumes', [aVolume()])
  await page.route(/\/api\/volumes\?.*deleted=true/, (route) =>
    failing ? route.fulfill({ status: 500, json: {} }) : route.fulfill({ json: [] }),
  )
  await visit('/storage', { as })
  await trash(page).click()
  await expect(page.getByText('Failed to fetch volumes')).toBeVisible()
  await expect(page.getByRole('row', { name: /^datasets/ }), 'the list itself stays').toBeVisible()
  failing = false
  await page.getByRole('button', { name: 'Try again' }).click()
  await expect(page.getByText('Nothing was deleted lately.')).toBeVisible()
  await trash(page).click()
  await expect(page.getByText('Nothing was deleted lately.')).toHaveCount(0)
})
