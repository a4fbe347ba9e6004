// Section E of the checks: a pod is deleted.
import type { Page } from '@playwright/test'
import { answer, hold, isTo, Requests, refuse } from './answers'
import { aPod, id } from './bodies'
import type { Client, Pod, SSHKey, Volume } from './client'
import { expect, test } from './fixture'
import { publicKeys } from './seeds'

const card = (page: Page) => page.getByRole('article').first()
const question = (page: Page) => page.getByRole('alertdialog')

/** A pod of a person's own; not of the cloud but of the answers. */
function own(as: Client, part: Partial<Pod> = {}): Pod {
  return aPod({ team_id: as.teamId, created_by: as.userId, ...part })
}

async function confirm(page: Page): Promise<void> {
  await card(page).getByRole('button', { name: 'Delete' }).click()
  await question(page).getByRole('button', { name: 'Delete', exact: true }).click()
}

test('88 deleting asks first, and shows what it is about apart from the sentence', async ({
  page,
  visit,
  seeds,
}) => {
  const as = await seeds.hobby1()
  await answer(page, 'get', '/pods', [own(as)])
  const requests = new Requests(page)
  await visit('/pods', { as })
  await card(page).getByRole('button', { name: 'Delete' }).click()
  await expect(question(page)).toHaveAccessibleName(/^Delete/)
  await expect(question(page).getByText('2xA100_80GB', { exact: true })).toBeVisible()
  await question(page).getByRole('button', { name: 'Cancel' }).click()
  await expect(question(page)).toHaveCount(0)
  expect(requests.to('delete', '/pods/{id}')).toEqual([])
  await expect(card(page).getByText('Ready', { exact: true })).toBeVisible()
})

test('89 a pod shows as deleting before the answer, and is really gone after it', async ({
  page,
  visit,
  seeds,
}) => {
  const as = await seeds.newcomer()
  await as.pay(5)
  const volume = await as.post<Volume>('/volumes', { name: 'work', team_id: as.teamId })
  const key = await as.post<SSHKey>('/ssh-keys', {
    name: 'key',
    public_key: publicKeys[0],
    team_id: as.teamId,
  })
  const offer = (await as.offers('A100_80GB')).find((each) => each.gpuCount === 1)
  if (!offer) throw new Error('no offer')
  const pod = await as.ready((await as.createPod(offer, volume.id, key.id)).id)
  await visit('/pods', { as })
  await expect(card(page).getByText(`ssh -p ${pod.ssh_port} root@`)).toBeVisible()
  await expect(card(page).getByText('work', { exact: true })).toBeVisible()

  const release = await hold(page, 'delete', '/pods/{id}')
  const sent = page.waitForRequest((request) => isTo(request, 'delete', '/pods/{id}'))
  await confirm(page)
  await expect(card(page).getByText('Syncing data before deletion')).toBeVisible()
  const url = new URL((await sent).url())
  expect(url.pathname + url.search).toBe(`/api/pods/${pod.id}?team_id=${as.teamId}`)
  expect((await as.pod(pod.id))?.status).toBe('ready')
  release()
  await expect(card(page)).toHaveAttribute('data-status', 'deleted', { timeout: 20_000 })
  await expect(card(page).getByText('Deleted on request')).toBeVisible()
})

test('90 a deletion that fails says why, and the pod is what it was', async ({ page, visit, seeds }) => {
  const as = await seeds.hobby1()
  await answer(page, 'get', '/pods', [own(as)])
  await refuse(page, 'delete', '/pods/{id}', 409, 'busy')
  const release = await hold(page, 'delete', '/pods/{id}')
  await visit('/pods', { as })
  await expect(card(page).getByText('Ready', { exact: true })).toBeVisible()
  const read = await hold(page, 'get', '/pods') // the page puts it back by itself
  await confirm(page)
  await expect(card(page).getByText('Syncing data before deletion')).toBeVisible()
  release()
  await expect(page.getByRole('alert').filter({ hasText: /^Error deleting pod: busy$/ })).toBeVisible()
  await expect(card(page).getByText('Ready', { exact: true })).toBeVisible()
  await expect(card(page).getByText('ssh -p')).toBeVisible()
  read()
})

test('91 a deletion that fails without a word says so', async ({ page, visit, seeds }) => {
  const as = await seeds.hobby1()
  await answer(page, 'get', '/pods', [own(as)])
  await refuse(page, 'delete', '/pods/{id}', 500)
  const release = await hold(page, 'delete', '/pods/{id}')
  await visit('/pods', { as })
  await expect(card(page).getByText('Ready', { exact: true })).toBeVisible()
  const read = await hold(page, 'get', '/pods')
  await confirm(page)
  await expect(card(page).getByText('Syncing data before deletion')).toBeVisible()
  release()
  await expect(page.getByRole('alert').filter({ hasText: /^Failed to delete pod$/ })).toBeVisible()
  await expect(card(page).getByText('Ready', { exact: true })).toBeVisible()
  read()
})

test('92 what is going, gone or not there yet cannot be deleted', async ({ page, visit, seeds }) => {
  const as = await seeds.hobby1()
  const blocked = ['deleting', 'deleted', 'switching_off', 'temp'] as const
  await answer(page, 'get', '/pods', [
    own(as, { id: id('free'), gpu_type: 'FREE' }),
    ...blocked.map((name) =>
      own(as, {
        id: name === 'temp' ? 'temp-99' : id(name),
        gpu_type: name,
        status: name === 'temp' ? 'pending' : name,
      }),
    ),
  ])
  await visit('/pods', { as })
  const button = (name: string) =>
    page.getByRole('article', { name: `2x ${name}` }).getByRole('button', { name: 'Delete' })
  await expect(button('FREE')).toBeEnabled()
  for (const name of blocked) await expect(button(name.replace('_', ' '))).toBeDisabled()
})

test('a list read while a deletion is under way does not bring the pod back', async ({
  page,
  visit,
  seeds,
}) => {
  const as = await seeds.hobby1()
  const coming = own(as, { id: id('coming'), gpu_type: 'COMING', status: 'pending', ready_at: null })
  await answer(page, 'get', '/pods', [own(as), coming])
  await refuse(page, 'delete', '/pods/{id}', 409, 'busy')
  const release = await hold(page, 'delete', '/pods/{id}')
  await page.clock.install()
  await visit('/pods', { as })
  const going = page.getByRole('article', { name: '2x A100 80GB' })
  await going.getByRole('button', { name: 'Delete' }).click()
  await question(page).getByRole('button', { name: 'Delete', exact: true }).click()
  await expect(going).toHaveAttribute('data-status', 'deleting')
  const read = page.waitForResponse((response) => isTo(response.request(), 'get', '/pods'))
  await page.clock.runFor(30_000)
  await read
  await page.clock.runFor(1000)
  await expect(going).toHaveAttribute('data-status', 'deleting')
  const later = await hold(page, 'get', '/pods')
  release()
  await expect(going).toHaveAttribute('data-status', 'ready')
  later()
})
