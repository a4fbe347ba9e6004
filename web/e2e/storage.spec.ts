// Section G of the checks: /storage.
import type { Page } from '@playwright/test'
import { answer, hold, Requests, refuse } from './answers'
import { ago, aVolume, id } from './bodies'
import type { Volume } from './client'
import { expectRestored } from './deletions'
import { expect, test } from './fixture'

const heads = ['Name', 'Storage Used', 'Price per hour', 'Status', 'Actions']
const newVolume = (page: Page) => page.getByRole('button', { name: 'New Storage Volume' })
const form = (page: Page) => page.getByRole('dialog', { name: 'New Storage Volume' })
const row = (page: Page, name: string) => page.getByRole('row', { name: new RegExp(`^${name}\\b`) })

/** Confirms the question that a Delete button asks. */
async function confirmDelete(page: Page): Promise<void> {
  await page.getByRole('alertdialog').getByRole('button', { name: 'Delete' }).click()
}

test('121 a volume is a table row, and a card with the same data on a phone', async ({
  page,
  visit,
  seeds,
}) => {
  const as = await seeds.hobby1()
  const [volume] = await as.get<Volume[]>(`/volumes?team_id=${as.teamId}`)
  await visit('/storage', { as, width: 'D' })
  await expect(page.getByRole('columnheader')).toHaveText(heads)
  const cells = row(page, 'datasets').getByRole('cell')
  await expect(cells).toHaveCount(heads.length)
  const shown = ['datasets', volume?.id ?? '', '0/500 GB', '0%', '$0.0000/hr', 'Available', 'Delete']
  for (const text of shown) await expect(row(page, 'datasets')).toContainText(text)
  await visit('/storage', { as, width: 'M' })
  await expect(page.getByRole('table')).toHaveCount(0)
  const card = page.getByRole('list', { name: 'Storage' }).getByRole('listitem')
  for (const text of [...heads, ...shown]) await expect(card).toContainText(text)
  await expect(card.getByText(volume?.id ?? '')).toBeInViewport({ ratio: 1 })
})

test('122 123 GB read as used, percent and price', async ({ page, visit, seeds }) => {
  await answer(page, 'get', '/volumes', [aVolume({ size_gb: 123 })])
  await visit('/storage', { as: await seeds.hobby1() })
  await expect(row(page, 'datasets')).toContainText('123/500 GB')
  await expect(row(page, 'datasets').getByText('25%', { exact: true })).toBeVisible()
  await expect(row(page, 'datasets')).toContainText('$0.0246/hr')
  await expect(row(page, 'datasets').getByRole('meter')).toHaveAttribute('aria-valuenow', '123')
})

test('123 a volume in use cannot be deleted, an available one can', async ({ page, visit, seeds }) => {
  await answer(page, 'get', '/volumes', [
    aVolume({ name: 'busy', currently_used: true }),
    aVolume({ id: id('71'), name: 'free' }),
  ])
  await visit('/storage', { as: await seeds.hobby1() })
  await expect(row(page, 'busy')).toContainText('In Use')
  const locked = row(page, 'busy').getByRole('button', { name: 'Delete' })
  await expect(locked).toBeDisabled()
  await expect(locked).toHaveAttribute('title', 'The volume is in use')
  await expect(row(page, 'free')).toContainText('Available')
  await expect(row(page, 'free').getByRole('button', { name: 'Delete' })).toBeEnabled()
})

test('124 a name is trimmed and never empty', async ({ page, visit, seeds }) => {
  const as = await seeds.hobby()
  await answer(page, 'get', '/volumes', [])
  await answer(page, 'post', '/volumes', (request) => aVolume(request.postDataJSON()))
  const requests = new Requests(page)
  await visit('/storage', { as })
  for (const [typed, sent] of [
    ['  x  ', 'x'],
    ['   ', 'Untitled'],
  ] as const) {
    await page.reload()
    await newVolume(page).click()
    await form(page).getByLabel('Name').fill(typed)
    await form(page).getByRole('button', { name: 'Create volume' }).click()
    await expect(page.getByRole('dialog', { name: 'Volume created' })).toBeVisible()
    expect(requests.to('post', '/volumes').at(-1)?.postDataJSON()).toEqual({ name: sent, team_id: as.teamId })
  }
})

test('125 a created volume stands at the top without a reload', async ({ page, visit, seeds }) => {
  const { admin, id: team } = await seeds.pro()
  await visit('/storage', { as: admin, team })
  await expect(page.getByRole('row')).toHaveCount(3)
  await page.evaluate(() => Object.assign(window, { kept: true }))
  await newVolume(page).click()
  await form(page).getByLabel('Name').fill('newest')
  await page.keyboard.press('Enter')
  await expect(page.getByRole('dialog', { name: 'Volume created' })).toBeVisible()
  await page.keyboard.press('Escape')
  await expect(page.getByRole('row').nth(1)).toContainText('newest')
  expect(await page.evaluate(() => 'kept' in window)).toBe(true)
  await row(page, 'newest').getByRole('button', { name: 'Delete' }).click()
  await confirmDelete(page)
  await expect(page.getByRole('row')).toHaveCount(3)
  const names = async () => (await admin.get<Volume[]>(`/volumes?team_id=${team}`)).map((v) => v.name)
  await expect.poll(names).toEqual(['checkpoints', 'datasets'])
})

test('126 a refused volume is an error with its detail, or with a fallback', async ({
  page,
  visit,
  seeds,
}) => {
  await answer(page, 'get', '/volumes', [])
  await visit('/storage', { as: await seeds.hobby() })
  for (const [detail, text] of [
    ['quota', /^Error creating volume: quota$/],
    [undefined, /Failed to create volume/],
  ] as const) {
    await refuse(page, 'post', '/volumes', 409, detail)
    await newVolume(page).click()
    await form(page).getByLabel('Name').fill('datasets')
    await form(page).getByRole('button', { name: 'Create volume' }).click()
    const modal = page.getByRole('dialog', { name: 'Volume not created' })
    await expect(modal.getByText(text)).toBeVisible()
    await modal.getByRole('button', { name: 'Close' }).click()
  }
  await newVolume(page).click()
  await expect(form(page).getByLabel('Name'), 'what was typed is not lost').toHaveValue('datasets')
})

test('127 the plan decides whether the modal opens', async ({ page, visit, seeds }) => {
  const requests = new Requests(page)
  await visit('/storage', { as: await seeds.hobby1() })
  await expect(row(page, 'datasets')).toBeVisible()
  await newVolume(page).click()
  await expect(page).toHaveURL(/\/billing/)
  await expect(page.getByText('Hobby teams have one volume. Pro has no limit.')).toBeVisible()
  await expect(page.getByRole('dialog')).toHaveCount(0)

  const release = await hold(page, 'get', '/volumes')
  await visit('/storage', { as: await seeds.hobby1() })
  await newVolume(page).click() // before the list is known
  release()
  await expect(page).toHaveURL(/\/billing/)
  await expect(page.getByRole('dialog')).toHaveCount(0)
  expect(requests.to('post', '/volumes')).toEqual([])

  await visit('/storage', { as: await seeds.hobby() })
  await newVolume(page).click()
  await expect(form(page)).toBeVisible()

  const { admin, id: team } = await seeds.pro()
  await visit('/storage', { as: admin, team })
  await expect(page.getByRole('row')).toHaveCount(3)
  await newVolume(page).click()
  await expect(form(page)).toBeVisible()
})

test('128 a deleted row goes at once and comes back to its place on failure', async ({
  page,
  visit,
  seeds,
}) => {
  await answer(
    page,
    'get',
    '/volumes',
    ['first', 'second', 'third'].map((name, i) => aVolume({ id: id('7', i), name, created_at: ago(60 * i) })),
  )
  await visit('/storage', { as: await seeds.hobby1() })
  await expectRestored(page, '/volumes', {
    detailed: 'Error deleting volume: in use',
    bare: 'Failed to delete volume',
  })
})

test('129 volumes in the trash are not listed', async ({ page, visit, seeds }) => {
  await answer(page, 'get', '/volumes', [
    aVolume({ name: 'here' }),
    aVolume({ id: id('71'), name: 'gone', deleted: true }),
  ])
  await visit('/storage', { as: await seeds.hobby1() })
  await expect(row(page, 'here')).toBeVisible()
  await expect(page.getByText('gone')).toHaveCount(0)
})

test('130 a link leads to the usage history in billing', async ({ page, visit, seeds }) => {
  await visit('/storage', { as: await seeds.hobby1() })
  await page.getByRole('link', { name: 'Usage history' }).click()
  await expect(page).toHaveURL(/\/billing\?tab=storage$/)
  await expect(page.getByRole('tab', { name: 'Storage Transactions' })).toHaveAttribute(
    'aria-selected',
    'true',
  )
})

test('131 a failure to read the list says so and can be tried again', async ({ page, visit, seeds }) => {
  let failing = true
  await page.route(/\/api\/volumes\?/, (route) =>
    failing ? route.fulfill({ status: 500, json: {} }) : route.fallback(),
  )
  await visit('/storage', { as: await seeds.hobby1() })
  await expect(page.getByText('Failed to fetch volumes')).toBeVisible()
  failing = false
  await page.getByRole('button', { name: 'Try again' }).click()
  await expect(row(page, 'datasets')).toBeVisible()
  await expect(page.getByText('Failed to fetch volumes')).toHaveCount(0)
})

test('132 a visitor sees an example and can neither create nor delete', async ({ page, visit }) => {
  const requests = new Requests(page)
  await visit('/storage')
  await expect(newVolume(page)).toBeDisabled()
  await expect(newVolume(page)).toHaveAttribute('title', 'Sign in to create volumes')
  await expect(page.getByText('Example', { exact: true })).toBeVisible()
  const gone = page.getByRole('button', { name: 'Delete' })
  await expect(gone).toBeDisabled()
  await expect(gone).toHaveAttribute('title', 'Sign in to delete volumes')
  expect(requests.to('get', '/volumes')).toEqual([])
})

test('a volume says when its quota is nearly or more than used', async ({ page, visit, seeds }) => {
  const sizes = [449, 450, 500, 525.5]
  await answer(
    page,
    'get',
    '/volumes',
    sizes.map((size_gb, i) => aVolume({ id: id('7', i), name: `size-${i}`, size_gb })),
  )
  await visit('/storage', { as: await seeds.hobby1(), width: 'M' })
  const cards = page.getByRole('list', { name: 'Storage' }).getByRole('listitem')
  await expect(cards.nth(0)).not.toContainText('sync')
  await expect(cards.nth(1)).toContainText('Nearly full. Above 525 GB background sync stops.')
  await expect(cards.nth(2)).toContainText('Full. Above 525 GB background sync stops.')
  await expect(cards.nth(3)).toContainText('525.5/500 GB')
  await expect(cards.nth(3)).toContainText('Too full: background sync has stopped.')
})
