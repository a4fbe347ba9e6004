// Section E of the checks: /pods.
import { answer, Requests } from './answers'
import { aPod, id } from './bodies'
import { expect, test } from './fixture'

test("82 a ready pod's card shows its ssh command", async ({ page, visit, seeds }) => {
  await answer(page, 'get', '/pods', [aPod({ id: '9f3c1a77-aaaa-4aaa-8aaa-000000000000', ssh_port: 30412 })])
  await visit('/pods', { as: await seeds.hobby1() })
  await expect(page.getByText('ssh -p 30412 root@9f3c1a77.pods.example')).toBeVisible()
})

test('87 the list is read every 30 s while a pod is on its way, and not once all are ready', async ({
  page,
  visit,
  seeds,
}) => {
  let status: 'pending' | 'ready' = 'pending'
  await answer(page, 'get', '/pods', () => [aPod({ id: id('pod'), status })])
  await page.clock.install()
  const requests = new Requests(page)
  await visit('/pods', { as: await seeds.hobby1() })
  await expect(page.getByText('Booting up instance').first()).toBeVisible()
  const before = requests.to('get', '/pods').length
  await page.clock.runFor(30_000)
  await expect.poll(() => requests.to('get', '/pods').length).toBe(before + 1)
  status = 'ready'
  await page.clock.runFor(30_000)
  await expect(page.getByText('ssh -p')).toBeVisible()
  const after = requests.to('get', '/pods').length
  await page.clock.runFor(5 * 60_000)
  expect(requests.to('get', '/pods').length).toBe(after)
})
