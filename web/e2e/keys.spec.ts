// Section H of the checks: /ssh-keys.
import type { Page } from '@playwright/test'
import { answer, Requests, refuse } from './answers'
import { ago, aKey, id } from './bodies'
import type { SSHKey } from './client'
import { expectRestored } from './deletions'
import { expect, test } from './fixture'
import { publicKeys } from './seeds'

const create = (page: Page) => page.getByRole('button', { name: 'Create SSH Key' })
const form = (page: Page) => page.getByRole('dialog', { name: 'Create SSH Key' })
const submit = (page: Page) => form(page).getByRole('button', { name: 'Create SSH Key' })
const row = (page: Page, name: string) => page.getByRole('row', { name: new RegExp(`^${name}\\b`) })
const [laptop = '', desk = ''] = publicKeys

test('133 a key is a row of name, id, its first 50 characters, its type and Delete', async ({
  page,
  visit,
  seeds,
}) => {
  const as = await seeds.hobby1()
  const [key] = await as.get<SSHKey[]>(`/ssh-keys?team_id=${as.teamId}`)
  const heads = ['Name', 'Public key', 'Key type', 'Actions']
  await visit('/ssh-keys', { as, width: 'D' })
  await expect(page.getByRole('columnheader')).toHaveText(heads)
  const cells = row(page, 'laptop').getByRole('cell')
  await expect(cells.nth(0)).toContainText(`laptop${key?.id}`)
  await expect(cells.nth(1)).toHaveText(/^.{50}$/)
  await expect(cells.nth(1)).toHaveText(laptop.slice(0, 50))
  await expect(cells.nth(2)).toHaveText('ssh-ed25519')
  await expect(cells.nth(3).getByRole('button', { name: 'Delete SSH key laptop' })).toBeEnabled()
  await visit('/ssh-keys', { as, width: 'M' })
  const card = page.getByRole('list', { name: 'SSH Keys' }).getByRole('listitem')
  for (const text of [...heads, 'laptop', key?.id ?? '', laptop.slice(0, 50), 'ssh-ed25519', 'Delete'])
    await expect(card).toContainText(text)
})

test('the longest type of a key stays in its card', async ({ page, visit, seeds }) => {
  const type = 'sk-ecdsa-sha2-nistp256@openssh.com'
  await answer(page, 'get', '/ssh-keys', [aKey({ key_type: type }), aKey({ id: id('5f') })])
  await visit('/ssh-keys', { as: await seeds.hobby1(), width: 'M' })
  for (const width of [390, 1000]) {
    await page.setViewportSize({ width, height: 844 })
    const inside = await page.getByText(type).evaluate((badge) => {
      const card = badge.closest('li')?.getBoundingClientRect()
      return card !== undefined && badge.getBoundingClientRect().right <= card.right
    })
    expect(inside, `at ${width} px`).toBe(true)
  }
})

test('134 a key needs its public half, and is sent trimmed and named', async ({ page, visit, seeds }) => {
  const as = await seeds.hobby()
  await answer(page, 'get', '/ssh-keys', [])
  await answer(page, 'post', '/ssh-keys', (request) => aKey(request.postDataJSON()))
  const requests = new Requests(page)
  await visit('/ssh-keys', { as })
  await create(page).click()
  for (const blank of ['', ' \n\t ']) {
    await form(page).getByLabel('Public key').fill(blank)
    await submit(page).click()
    await expect(form(page).getByRole('alert')).toHaveText('The public key is required')
    await expect(form(page).getByLabel('Public key')).toHaveAttribute('aria-invalid', 'true')
  }
  await form(page).getByLabel('Public key').fill('-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaA==')
  await submit(page).click()
  await expect(form(page).getByRole('alert')).toHaveText(
    'This is a private key. Paste the public one, from the .pub file.',
  )
  expect(requests.to('post', '/ssh-keys')).toEqual([])
  await form(page).getByLabel('Name').fill('  ')
  await form(page).getByLabel('Public key').fill(`\n  ${laptop} \n`)
  await submit(page).click()
  await expect(page.getByRole('dialog', { name: 'SSH key created' })).toBeVisible()
  expect(requests.to('post', '/ssh-keys').map((request) => request.postDataJSON())).toEqual([
    { name: 'Untitled', public_key: laptop, team_id: as.teamId },
  ])
})

test('a first key is said to be chosen with a pod, and leads on to one', async ({ page, visit, seeds }) => {
  await answer(page, 'get', '/ssh-keys', [])
  await answer(page, 'post', '/ssh-keys', aKey())
  await visit('/ssh-keys', { as: await seeds.hobby() })
  await expect(page.getByText('You choose one when you create a pod. It lets you in as root.')).toBeVisible()
  await create(page).click()
  await form(page).getByLabel('Public key').fill(laptop)
  await submit(page).click()
  const done = page.getByRole('dialog', { name: 'SSH key created' })
  await done.getByRole('link', { name: 'Create New Instance' }).click()
  await expect(page).toHaveURL(/\/create$/)
})

test('135 a refused key is an error with its detail, or with a fallback', async ({ page, visit, seeds }) => {
  await answer(page, 'get', '/ssh-keys', [])
  await visit('/ssh-keys', { as: await seeds.hobby() })
  await create(page).click()
  await form(page).getByLabel('Public key').fill(laptop)
  for (const [detail, text] of [
    ['bad key', /^Error creating SSH key: bad key$/],
    [undefined, /Failed to create SSH key/],
  ] as const) {
    await refuse(page, 'post', '/ssh-keys', 422, detail)
    await submit(page).click()
    const modal = page.getByRole('dialog', { name: 'SSH key not created' })
    await expect(modal.getByText(text)).toBeVisible()
    await modal.getByRole('button', { name: 'Close' }).click()
    await create(page).click()
    await expect(form(page).getByLabel('Public key'), 'what was pasted is not lost').toHaveValue(laptop)
  }
})

test('136 a deleted row goes at once and comes back to its place on failure', async ({
  page,
  visit,
  seeds,
}) => {
  await answer(
    page,
    'get',
    '/ssh-keys',
    ['first', 'second', 'third'].map((name, i) => aKey({ id: id('5', i), name, created_at: ago(60 * i) })),
  )
  await visit('/ssh-keys', { as: await seeds.hobby1() })
  await expectRestored(page, '/ssh-keys', {
    detailed: 'in use',
    bare: 'Failed to delete SSH key',
  })
})

test('137 a failure to read the list says so and keeps the old rows', async ({ page, visit, seeds }) => {
  await page.clock.install()
  await visit('/ssh-keys', { as: await seeds.hobby1() })
  await expect(row(page, 'laptop')).toBeVisible()
  await page.getByRole('link', { name: 'Manage Team' }).click()
  await refuse(page, 'get', '/ssh-keys', 500)
  await page.clock.fastForward('05:01')
  await page.getByRole('link', { name: 'SSH Keys' }).click()
  await page.clock.runFor(1000)
  await expect(page.getByText('Failed to fetch SSH keys')).toBeVisible()
  await expect(row(page, 'laptop')).toBeVisible()
  await page.reload()
  await page.clock.runFor(1000)
  await expect(page.getByText('Failed to fetch SSH keys')).toBeVisible()
  await expect(page.getByRole('row')).toHaveCount(0)
})

test('138 a visitor sees an example and can neither create nor delete', async ({ page, visit }) => {
  const requests = new Requests(page)
  await visit('/ssh-keys')
  await expect(create(page)).toBeDisabled()
  await expect(create(page)).toHaveAttribute('title', 'Sign in to create SSH keys')
  await expect(page.getByText('Example', { exact: true })).toBeVisible()
  const gone = page.getByRole('button', { name: 'Delete' })
  await expect(gone).toBeDisabled()
  await expect(gone).toHaveAttribute('title', 'Sign in to delete SSH keys')
  expect(requests.to('get', '/ssh-keys')).toEqual([])
})

test('a key is added to the team, shown at the top, and deleted again', async ({ page, visit, seeds }) => {
  const as = await seeds.hobby1()
  await visit('/ssh-keys', { as })
  await expect(page.getByRole('row')).toHaveCount(2)
  await create(page).click()
  await form(page).getByLabel('Name').fill('spare')
  await form(page).getByLabel('Public key').fill(desk)
  await submit(page).click()
  await expect(page.getByRole('dialog', { name: 'SSH key created' })).toBeVisible()
  await page.keyboard.press('Escape')
  await expect(page.getByRole('row').nth(1)).toContainText('spare')
  await row(page, 'spare').getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('alertdialog').getByRole('button', { name: 'Delete' }).click()
  await expect(page.getByRole('row')).toHaveCount(2)
  const names = async () => (await as.get<SSHKey[]>(`/ssh-keys?team_id=${as.teamId}`)).map((k) => k.name)
  await expect.poll(names).toEqual(['laptop'])
})
