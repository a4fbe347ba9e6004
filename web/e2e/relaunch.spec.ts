// Beyond the checks: a pod that ended for want of money is started again in one click.
import { answer, isTo, Requests, refuse } from './answers'
import { ago, anOffer, aPod, id } from './bodies'
import { expect, test } from './fixture'
import { expectAccessible, expectNoOverflow } from './looks'

const ended = aPod({
  status: 'deleted',
  status_reason: 'balance',
  status_detail: 'The wallet is empty. Add funds to start a new pod; the volume is kept.',
  ended_at: ago(60),
})
const here = anOffer({ gpuType: 'A100_80GB', gpuCount: 2, price: 2.7, country: 'DE', cloudId: 'here' })
const elsewhere = { ...here, price: 1.9, provider: 'harbor', cloudId: 'elsewhere' }

test('a landed pod starts again with its volume and key, at the price on the button', async ({
  page,
  visit,
  seeds,
}) => {
  await answer(page, 'get', '/pods', [ended])
  await answer(page, 'get', '/resources', { A100_80GB: [elsewhere, here] })
  await answer(
    page,
    'post',
    '/pods',
    aPod({ id: id('new'), status: 'pending', ready_at: null, ssh_port: null }),
  )
  for (const width of ['M', 'D'] as const) {
    await visit('/pods', { as: await seeds.hobby(), width })
    await expect(page.getByRole('button', { name: 'Start again for $2.700/hr' })).toBeEnabled()
    await expectNoOverflow(page)
    await expectAccessible(page)
  }
  const sent = page.waitForRequest((request) => isTo(request, 'post', '/pods'))
  await page.getByRole('button', { name: 'Start again for $2.700/hr' }).click()
  expect((await sent).postDataJSON()).toMatchObject({
    volume_id: ended.volume_id,
    ssh_key_id: ended.ssh_key_id,
    gpu_type: 'A100_80GB',
    gpu_count: 2,
    cloud_id: 'here',
    price: 2.7,
  })
})

test('the server says why it cannot', async ({ page, visit, seeds }) => {
  await answer(page, 'get', '/pods', [ended])
  await answer(page, 'get', '/resources', { A100_80GB: [here] })
  await refuse(page, 'post', '/pods', 409, 'The volume is in use.')
  await visit('/pods', { as: await seeds.hobby() })
  await page.getByRole('button', { name: 'Start again for $2.700/hr' }).click()
  await expect(page.getByRole('alert')).toHaveText('The volume is in use.')
  await expect(page.getByRole('button', { name: 'Start again for $2.700/hr' })).toBeEnabled()
})

test('without the list of offers nothing can be started, and the button says so', async ({
  page,
  visit,
  seeds,
}) => {
  await answer(page, 'get', '/pods', [ended])
  await refuse(page, 'get', '/resources', 500)
  await visit('/pods', { as: await seeds.hobby() })
  const button = page.getByRole('button', { name: 'Start again', exact: true })
  await expect(button).toHaveAttribute('title', 'Failed to fetch resources')
  await expect(button).toBeDisabled()
})

test('while another pod holds the volume, the button says so', async ({ page, visit, seeds }) => {
  const holder = aPod({ id: id('holder') })
  let pods = [ended, holder]
  await answer(page, 'get', '/pods', () => pods)
  await answer(page, 'get', '/resources', { A100_80GB: [here] })
  await visit('/pods', { as: await seeds.hobby() })
  const button = page.getByRole('button', { name: 'Start again for $2.700/hr' })
  await expect(button).toHaveAttribute('title', 'Its volume is in use by another pod')
  await expect(button).toBeDisabled()
  pods = [ended, { ...holder, status: 'deleted', status_reason: 'user', ended_at: ago(1) }]
  await page.reload()
  await expect(button).toBeEnabled()
})

test('without such an offer, and for a pod that its user deleted, nothing can be started', async ({
  page,
  visit,
  seeds,
}) => {
  await answer(page, 'get', '/pods', [ended, { ...ended, id: id('user'), status_reason: 'user' }])
  await answer(page, 'get', '/resources', { A100_80GB: [{ ...here, gpuCount: 1 }] })
  await visit('/pods', { as: await seeds.hobby() })
  await expect(page.getByRole('button', { name: /Start again/ })).toHaveCount(1)
  await expect(page.getByTitle('No offer has these GPUs at the moment')).toBeDisabled()
})

test('a running pod is told on its card to start again elsewhere, and keeps it when the call fails', async ({
  page,
  visit,
  seeds,
}) => {
  const as = await seeds.hobby()
  let pod = aPod({ status: 'ready', team_id: as.teamId, created_by: as.userId })
  await answer(page, 'get', '/pods', () => [pod])
  await answer(page, 'patch', '/pods/{id}', () => {
    pod = { ...pod, auto_relaunch: true }
    return pod
  })
  await visit('/pods', { as })
  const restart = page.getByRole('switch', { name: 'Restart elsewhere if lost' })
  await expect(restart).not.toBeChecked()
  const sent = page.waitForRequest((request) => isTo(request, 'patch', '/pods/{id}'))
  await restart.click()
  expect((await sent).postDataJSON()).toEqual({ auto_relaunch: true })
  await expect(restart).toBeChecked()
  await refuse(page, 'patch', '/pods/{id}', 409, 'The pod cannot do that in its present state.')
  await restart.click()
  await expect(page.getByRole('alert')).toHaveText('The pod cannot do that in its present state.')
  await expect(restart).toBeChecked()
})

test('a lost pod that waits for another cloud is followed, and told not to start again', async ({
  page,
  visit,
  seeds,
}) => {
  const as = await seeds.hobby()
  let pod = aPod({
    team_id: as.teamId,
    created_by: as.userId,
    status: 'deleted',
    status_reason: 'machine_lost',
    status_detail: 'The machine was lost. It is being started again on another cloud.',
    auto_relaunch: true,
    relaunch_pending: true,
    ended_at: ago(60),
  })
  await answer(page, 'get', '/pods', () => [pod])
  await answer(page, 'get', '/resources', {})
  await answer(page, 'patch', '/pods/{id}', () => {
    pod = { ...pod, auto_relaunch: false, relaunch_pending: false, status_detail: 'The machine was lost.' }
    return pod
  })
  await page.clock.install()
  const requests = new Requests(page)
  await visit('/pods', { as })
  const restart = page.getByRole('switch', { name: 'Restart elsewhere if lost' })
  await expect(restart).toBeChecked()
  await expect(page.getByRole('link', { name: 'Rent another pod' }), 'while it is cared for').toHaveCount(0)
  await expect(page.getByRole('button', { name: /Start again/ })).toHaveCount(0)
  const before = requests.to('get', '/pods').length
  await page.clock.runFor(30_000)
  await expect.poll(() => requests.to('get', '/pods').length).toBe(before + 1)
  await restart.click()
  await expect(restart).toHaveCount(0)
  await expect(page.getByRole('article')).toBeFocused()
  expect(requests.to('patch', '/pods/{id}').map((request) => request.postDataJSON())).toEqual([
    { auto_relaunch: false },
  ])
  await expect(page.getByText('The machine was lost.', { exact: true })).toBeVisible()
  await expect(page.getByRole('link', { name: 'Rent another pod' })).toBeVisible()
  await expect(page.getByRole('button', { name: /Start again/ })).toBeVisible()
  pod = { ...pod, relaunched_as: id('0ce4') }
  await page.reload()
  await expect(page.getByText('Started again as pod 0ce40000.')).toBeVisible()
  await expect(page.getByRole('link', { name: 'Rent another pod' })).toHaveCount(0)
  await expect(page.getByRole('button', { name: /Start again/ })).toHaveCount(0)
})
