// Beyond the checks: volumes whose key only their team holds.
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Page, Request } from '@playwright/test'
import type { components } from '../src/api/schema.gen'
import { answer, hold, isTo, Requests, refuse } from './answers'
import { ago, anOffer, aPod, aVolume, id } from './bodies'
import type { Client, Pod, SSHKey, Volume } from './client'
import { expect, test } from './fixture'
import { tabTo } from './keyboard'
import { expectAccessible, expectNoOverflow } from './looks'
import { publicKeys } from './seeds'

const newVolume = (page: Page) => page.getByRole('button', { name: 'New Storage Volume' })
const form = (page: Page) => page.getByRole('dialog', { name: 'New Storage Volume' })
const create = (page: Page) => form(page).getByRole('button', { name: 'Create volume' })
const own = (page: Page) => form(page).getByRole('checkbox', { name: 'Only our team holds its key' })
const stored = (page: Page) => form(page).getByRole('checkbox', { name: 'I have stored the key' })
const shownKey = (page: Page) => form(page).getByLabel('Key of this volume')
const row = (page: Page, name: string) => page.getByRole('row', { name: new RegExp(`^${name}\\b`) })
const unlocking = (page: Page) => page.getByRole('dialog', { name: 'Unlock Volume' })
const field = (page: Page) => unlocking(page).getByLabel('Key')
const files = (page: Page) => page.getByRole('dialog', { name: /^Files of / })

const aKeyText = () => `hpk_${randomBytes(32).toString('base64url')}`

/** Unlocks in the dialog that asks for the key. */
async function unlock(page: Page, key: string): Promise<void> {
  await field(page).fill(key)
  await unlocking(page).getByRole('button', { name: 'Unlock' }).click()
  await expect(unlocking(page)).toHaveCount(0)
}

/** A locked volume of somebody's, made by a program. */
async function aLockedVolume(as: Client, name: string): Promise<{ volume: Volume; key: string }> {
  const key = aKeyText()
  const volume = await as.post<Volume>('/volumes', { name, team_id: as.teamId, key })
  await lock(as, volume)
  return { volume, key }
}

async function lock(as: Client, { id: volumeId }: Volume): Promise<Volume> {
  return as.post<Volume>(`/volumes/${volumeId}/lock?team_id=${as.teamId}`, undefined)
}

function aVersion(): components['schemas']['Version'] {
  return {
    version: 1,
    created_at: ago(180),
    newest: true,
    size_gb: 1,
    size_bytes: 1_000_000_000,
    entries: 12,
    kind: 'background',
    pod_id: id('9f3c1a77'),
    restored_from: null,
    files_added: 12,
    files_changed: 0,
    files_removed: 0,
    skipped: 0,
    unstable: 0,
  }
}

/** Everything that a browser keeps of a page. */
async function keptBy(page: Page): Promise<string> {
  const state = await page.context().storageState({ indexedDB: true })
  const rest = await page.evaluate(async () => [
    { ...sessionStorage },
    history.state,
    location.href,
    document.title,
    await caches.keys(),
  ])
  return JSON.stringify([state, rest])
}

test('a volume with a key of its own is made, locked and unlocked with the keyboard; the key stays with its team', async ({
  page,
  visit,
  seeds,
  homeport,
  context,
}) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  const as = await seeds.newcomer('key')
  const sent: Request[] = []
  page.on('request', (request) => sent.push(request))
  await visit('/storage', { as })
  await tabTo(page, newVolume(page))
  await page.keyboard.press('Enter')
  await expect(form(page).getByLabel('Name')).toBeFocused()
  await page.keyboard.type('sealed')
  await page.keyboard.press('Tab')
  await expect(own(page)).toBeFocused()
  await expect(own(page)).not.toBeChecked()
  await expect(create(page)).toBeEnabled()

  await page.keyboard.press('Space')
  await expect(create(page), 'until the key is stored').toBeDisabled()
  await expect(create(page)).toHaveAttribute('title', 'Store the key first')
  const key = await shownKey(page).inputValue()
  expect(key).toMatch(/^hpk_[\w-]{43}$/)
  await expect(shownKey(page)).not.toBeEditable()
  await form(page).getByLabel('Name').press('Enter')
  await expect(form(page)).toBeVisible()

  await test.step('it is copied, and saved as a file that restic takes', async () => {
    await tabTo(page, form(page).getByRole('button', { name: 'Copy' }))
    await page.keyboard.press('Enter')
    await expect(page.getByRole('status').filter({ hasText: 'Key copied to clipboard!' })).toBeVisible()
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(key)
    await tabTo(page, form(page).getByRole('button', { name: 'Download' }))
    const waiting = page.waitForEvent('download')
    await page.keyboard.press('Enter')
    const file = await waiting
    expect(file.suggestedFilename()).toBe('homeport-key-sealed.txt')
    expect(readFileSync(await file.path(), 'utf8')).toBe(`${key}\n`)
  })

  await tabTo(page, stored(page))
  await page.keyboard.press('Space')
  await expect(create(page)).toBeEnabled()
  expect(
    sent.filter((request) => isTo(request, 'post', '/volumes')),
    'before Create',
  ).toEqual([])
  await tabTo(page, create(page))
  await page.keyboard.press('Enter')
  await expect(page.getByRole('dialog', { name: 'Volume created' })).toBeVisible()
  await page.keyboard.press('Escape')
  await expect(row(page, 'sealed')).toContainText('Available')
  await expect(row(page, 'sealed').getByText('Unlocked', { exact: true })).toBeVisible()

  await test.step('it is locked', async () => {
    await tabTo(page, row(page, 'sealed').getByRole('button', { name: 'Lock volume sealed', exact: true }))
    await page.keyboard.press('Enter')
    const question = page.getByRole('alertdialog', { name: 'Lock Volume' })
    await expect(question).toContainText('Lock sealed? From then on only its key opens it.')
    await tabTo(page, question.getByRole('button', { name: 'Lock' }))
    await page.keyboard.press('Enter')
    await expect(row(page, 'sealed').getByText('Locked', { exact: true })).toBeVisible()
    await expect(row(page, 'sealed').getByRole('button', { name: 'Unlock volume sealed' })).toBeFocused()
  })

  await test.step('another key is refused at the field, and what is no key is not sent', async () => {
    await page.keyboard.press('Enter')
    await expect(field(page)).toBeFocused()
    await expect(field(page)).toHaveAttribute('type', 'password')
    await expect(field(page)).toHaveAttribute('autocomplete', 'off')
    await page.keyboard.type('hunter2')
    await page.keyboard.press('Enter')
    await expect(field(page)).toHaveAccessibleDescription(/A key is "hpk_" and 43 letters/)
    expect(sent.filter((request) => isTo(request, 'post', '/volumes/{id}/unlock'))).toEqual([])
    await page.keyboard.insertText(aKeyText())
    await page.keyboard.press('Enter')
    await expect(field(page)).toHaveAccessibleDescription(/This is not the key of this volume\./)
    await expect(field(page)).toHaveAttribute('aria-invalid', 'true')
    await expect(field(page)).toBeFocused()
  })

  await test.step('its own key opens it', async () => {
    await page.keyboard.insertText(` ${key} `)
    await expect(field(page)).toHaveAttribute('aria-invalid', 'false')
    await page.keyboard.press('Enter')
    await expect(row(page, 'sealed').getByText('Unlocked', { exact: true })).toBeVisible()
    await expect(unlocking(page)).toHaveCount(0)
    await expect(
      row(page, 'sealed').getByRole('button', { name: 'Lock volume sealed', exact: true }),
    ).toBeFocused()
  })

  expect(await keptBy(page), 'what the browser keeps').not.toContain(key)
  const withKey = sent.filter((request) =>
    [request.url(), JSON.stringify(request.headers()), request.postData() ?? ''].some((part) =>
      part.includes(key),
    ),
  )
  expect(withKey.map((request) => `${request.method()} ${new URL(request.url()).pathname}`)).toEqual([
    'POST /api/volumes',
    expect.stringMatching(/^POST \/api\/volumes\/[0-9a-f-]+\/unlock$/),
  ])
  expect(homeport.logs.join('')).not.toContain(key)
  expect(JSON.stringify(await as.get<Volume[]>(`/volumes?team_id=${as.teamId}`))).not.toContain(key)
})

test('a pod with a locked volume is ordered once its key was given, and holds the volume open', async ({
  page,
  visit,
  seeds,
}) => {
  test.setTimeout(120_000)
  const as = await seeds.newcomer('key')
  await as.pay(10)
  const { volume, key } = await aLockedVolume(as, 'sealed')
  await as.post<SSHKey>('/ssh-keys', { name: 'k', public_key: publicKeys[0], team_id: as.teamId })
  const requests = new Requests(page)
  await visit('/create', { as, width: 'M' })
  const submit = page.getByRole('button', { name: 'Create Instance' })
  const picker = page.getByRole('combobox', { name: 'Volume' })
  await expect(picker.getByRole('option', { selected: true })).toHaveText('sealed (0 GB) – Locked')
  await expect(picker).toHaveAccessibleDescription('Locked. Its key is asked for before the pod is created.')

  await test.step('who does not give it orders nothing', async () => {
    await submit.click()
    await expect(unlocking(page)).toBeVisible()
    await page.keyboard.press('Escape')
    await expect(unlocking(page)).toHaveCount(0)
    await expect(submit).toBeFocused()
    expect(requests.to('post', '/pods')).toEqual([])
  })

  await submit.click()
  await unlock(page, key)
  await expect(page).toHaveURL(/\/pods$/)
  await expect.poll(() => requests.to('post', '/pods').length).toBe(1)
  await expect.poll(async () => (await as.get<Pod[]>(`/pods?team_id=${as.teamId}`)).length).toBe(1)
  const [pod] = await as.get<Pod[]>(`/pods?team_id=${as.teamId}`)
  expect(pod?.volume_id).toBe(volume.id)
  await as.ready(pod?.id ?? '')

  await test.step('a volume in use cannot be locked', async () => {
    await visit('/storage', { as })
    const button = row(page, 'sealed').getByRole('button', { name: 'Lock volume sealed', exact: true })
    await expect(button).toBeDisabled()
    await expect(button).toHaveAttribute('title', 'The volume is in use')
  })
  await as.delete(`/pods/${pod?.id}?team_id=${as.teamId}`)
  await as.ended(pod?.id ?? '')
  await page.reload()
  await expect(row(page, 'sealed')).toContainText('Available')
  await expect(row(page, 'sealed').getByText('Unlocked', { exact: true })).toBeVisible()
})

test('a pod whose volume locks itself before the order is ordered once the key was given', async ({
  page,
  visit,
  seeds,
}) => {
  test.setTimeout(120_000)
  const as = await seeds.newcomer('key')
  await as.pay(10)
  const { volume, key } = await aLockedVolume(as, 'sealed')
  await as.post(`/volumes/${volume.id}/unlock?team_id=${as.teamId}`, { key })
  await as.post<SSHKey>('/ssh-keys', { name: 'k', public_key: publicKeys[0], team_id: as.teamId })
  await visit('/create', { as })
  const submit = page.getByRole('button', { name: 'Create Instance' })
  await expect(page.getByRole('combobox', { name: 'Volume' })).toHaveAccessibleDescription(/^Empty/)
  await expect(submit).toBeEnabled()
  await lock(as, volume)
  await submit.click()
  await expect(unlocking(page)).toContainText('sealed has locked itself meanwhile. Give its key to go on.')
  await expect(page.getByRole('alert')).toHaveCount(0)
  await expect(page.getByRole('article'), 'the pod that was refused').toHaveCount(0)
  await expectAccessible(page)
  await unlock(page, key)
  await expect(page).toHaveURL(/\/pods$/)
  await expect(page.getByRole('article')).toHaveCount(1)
  await expect.poll(async () => (await as.get<Pod[]>(`/pods?team_id=${as.teamId}`)).length).toBe(1)
  const [pod] = await as.get<Pod[]>(`/pods?team_id=${as.teamId}`)
  await as.delete(`/pods/${pod?.id}?team_id=${as.teamId}`)
  await as.ended(pod?.id ?? '')
})

test('Files of a locked volume come after its key, also when it was locked meanwhile', async ({
  page,
  visit,
  seeds,
}) => {
  const as = await seeds.newcomer('key')
  const { volume, key } = await aLockedVolume(as, 'sealed')
  await visit('/storage', { as, width: 'M' })
  const open = page.getByRole('button', { name: 'Files of sealed' })
  await open.click()
  await expect(unlocking(page)).toBeVisible()
  await expect(files(page)).toHaveCount(0)
  await unlock(page, key)
  await expect(files(page).getByText('Nothing is saved yet')).toBeVisible()
  await page.keyboard.press('Escape')
  await expect(open).toBeFocused()

  await page.reload()
  await expect(open).toBeVisible()
  await lock(as, volume)
  await answer(page, 'get', '/volumes/{id}/versions', [aVersion()])
  let unlocked = false
  page.on('response', (response) => {
    unlocked ||= response.ok() && isTo(response.request(), 'post', '/volumes/{id}/unlock')
  })
  await page.route(/\/versions\/1\/files\?/, (route) =>
    unlocked
      ? route.fulfill({ json: { version: 1, path: '', total: 0, offset: 0, entries: [] } })
      : route.fulfill({ status: 409, json: { status: 409, code: 'volume_locked', detail: 'It is locked.' } }),
  )
  await open.click()
  const alert = files(page).getByRole('alert')
  await expect(alert).toContainText('Failed to fetch the folder')
  await expect(alert).toContainText('It is locked.')
  await alert.getByRole('button', { name: 'Try again' }).click()
  await unlock(page, key)
  await expect(files(page).getByText('This folder is empty.')).toBeVisible()
  const focused = () => files(page).evaluate((dialog) => dialog.contains(document.activeElement))
  await expect.poll(focused, 'the focus is in the dialog').toBe(true)
})

test('a pod whose volume is locked starts again once the key was given', async ({ page, visit, seeds }) => {
  const as = await seeds.newcomer('key')
  const { volume, key } = await aLockedVolume(as, 'sealed')
  const ended = aPod({
    team_id: as.teamId,
    volume_id: volume.id,
    status: 'deleted',
    status_reason: 'balance',
    ended_at: ago(7200),
  })
  await answer(page, 'get', '/pods', [ended])
  await answer(page, 'get', '/resources', {
    A100_80GB: [anOffer({ gpuType: 'A100_80GB', gpuCount: 2, price: 2.7 })],
  })
  await answer(page, 'post', '/pods', aPod({ id: id('new'), status: 'pending', ready_at: null }))
  const requests = new Requests(page)
  await visit('/pods', { as, width: 'M' })
  const again = page.getByRole('button', { name: 'Start again for $2.700/hr' })
  await expect(page.getByText('sealed')).toBeVisible()
  await again.click()
  await expect(unlocking(page)).toContainText('Only the key that your team holds opens sealed.')
  expect(requests.to('post', '/pods')).toEqual([])
  await unlock(page, key)
  await expect.poll(() => requests.to('post', '/pods').length).toBe(1)
  expect(requests.to('post', '/pods')[0]?.postDataJSON()).toMatchObject({
    volume_id: volume.id,
    relaunch_of: ended.id,
  })
})

test('after a refusal the stored key comes back with the form; the next volume has another', async ({
  page,
  visit,
  seeds,
}) => {
  const { admin, id: team } = await seeds.pro()
  await answer(page, 'get', '/volumes', [])
  await visit('/storage', { as: admin, team })
  const requests = new Requests(page)
  await refuse(page, 'post', '/volumes', 409, 'quota')
  await newVolume(page).click()
  await own(page).check()
  const key = await shownKey(page).inputValue()
  await own(page).uncheck()
  await expect(shownKey(page)).toHaveCount(0)
  await own(page).check()
  await expect(shownKey(page)).toHaveValue(key)
  await stored(page).check()
  await create(page).click()
  await page
    .getByRole('dialog', { name: 'Volume not created' })
    .getByRole('button', { name: 'Close' })
    .click()
  await newVolume(page).click()
  await expect(shownKey(page)).toHaveValue(key)
  await expect(stored(page)).toBeChecked()

  await answer(page, 'post', '/volumes', aVolume({ name: 'Untitled', team_key: true }))
  await create(page).click()
  await expect(page.getByRole('dialog', { name: 'Volume created' })).toBeVisible()
  expect(requests.to('post', '/volumes').map((request) => request.postDataJSON().key)).toEqual([key, key])
  await page.keyboard.press('Escape')
  await newVolume(page).click()
  await expect(own(page)).not.toBeChecked()
  await own(page).check()
  await expect(shownKey(page)).not.toHaveValue(key)
  await expect(stored(page)).not.toBeChecked()
})

test('choosing a locked volume asks for its key; who goes elsewhere is not asked any more', async ({
  page,
  visit,
  seeds,
}) => {
  const as = await seeds.hobby()
  const locked = aVolume({
    id: id('71'),
    team_id: as.teamId,
    name: 'sealed',
    created_at: ago(1e6),
    team_key: true,
    locked: true,
  })
  await answer(page, 'get', '/volumes', [aVolume(), locked])
  await answer(page, 'post', '/volumes/{id}/unlock', { ...locked, locked: false })
  await visit('/create', { as })
  const picker = page.getByRole('combobox', { name: 'Volume' })
  await picker.focus()
  await picker.selectOption('sealed (123 GB) – Locked')
  await expect(unlocking(page)).toBeVisible()
  await page.keyboard.press('Escape')
  await expect(picker).toBeFocused()
  await expect(picker).toHaveValue(locked.id)
  await expect(picker).toHaveAccessibleDescription(/^Locked\./)
  await picker.selectOption('datasets (123 GB)')
  await picker.selectOption('sealed (123 GB) – Locked')
  const release = await hold(page, 'post', '/volumes/{id}/unlock')
  await field(page).fill(aKeyText())
  await page.keyboard.press('Enter')
  await expect(unlocking(page).getByRole('button', { name: 'Unlock' })).toBeDisabled()
  await page.keyboard.press('Escape')
  await expect(unlocking(page), 'nothing closes it until its end can be told').toBeVisible()
  release()
  await expect(unlocking(page)).toHaveCount(0)
  await expect(picker).toHaveValue(locked.id)
  await expect(picker).toHaveAccessibleDescription(/^Back at \/workspace/)

  await page.reload()
  await picker.selectOption('sealed (123 GB) – Locked')
  await expect(unlocking(page)).toBeVisible()
  await page.evaluate(() => history.pushState({}, '', '/ssh-keys'))
  await expect(unlocking(page)).toHaveCount(0)
})

test('a volume that locks itself says so within a minute', async ({ page, visit, seeds }) => {
  let locked = false
  await answer(page, 'get', '/volumes', () => [aVolume({ team_key: true, locked })])
  await page.clock.install()
  await visit('/storage', { as: await seeds.hobby1() })
  await expect(row(page, 'datasets').getByText('Unlocked', { exact: true })).toBeVisible()
  locked = true
  await page.clock.runFor(61_000)
  await expect(row(page, 'datasets').getByText('Locked', { exact: true })).toBeVisible()
})

test('a viewer can neither unlock a volume nor lock it', async ({ page, visit, seeds }) => {
  const { viewer, id: team } = await seeds.pro()
  await answer(page, 'get', '/volumes', [
    aVolume({ name: 'closed', team_key: true, locked: true }),
    aVolume({ id: id('71'), name: 'open', team_key: true }),
  ])
  await visit('/storage', { as: viewer, team })
  for (const button of [
    page.getByRole('button', { name: 'Unlock volume closed' }),
    page.getByRole('button', { name: 'Files of closed' }),
    page.getByRole('button', { name: 'Lock volume open' }),
  ]) {
    await expect(button).toBeDisabled()
    await expect(button).toHaveAttribute('title', 'Viewers cannot create or change anything')
  }
  await expect(page.getByRole('button', { name: 'Files of open' })).toBeEnabled()
})

for (const width of ['D', 'M'] as const) {
  test(`the forms and rows of keys are whole at ${width}`, async ({ page, visit, seeds }) => {
    const name = `checkpoints-${'of-a-long-run-'.repeat(5)}`.slice(0, 80)
    await answer(page, 'get', '/volumes', [
      aVolume({ name, team_key: true, locked: true }),
      aVolume({ id: id('71'), name: 'busy', team_key: true, currently_used: true }),
    ])
    const { admin, id: team } = await seeds.pro()
    await visit('/storage', { as: admin, team, width })
    await expect(page.getByText('Locked', { exact: true })).toBeVisible()
    await expectNoOverflow(page)
    await expectAccessible(page)
    await newVolume(page).click()
    await expectAccessible(page)
    await own(page).check()
    await expect(create(page)).toBeVisible()
    await expectNoOverflow(page)
    await expectAccessible(page)
    await stored(page).check()
    await expectAccessible(page)
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: `Unlock volume ${name}` }).click()
    await field(page).fill('no key')
    await page.keyboard.press('Enter')
    await expect(field(page)).toHaveAttribute('aria-invalid', 'true')
    const wide = await unlocking(page).evaluate((box) => box.scrollWidth - box.clientWidth)
    expect(wide, 'px that the dialog can be scrolled sideways').toBe(0)
    await expectNoOverflow(page)
    await expectAccessible(page)
  })
}
