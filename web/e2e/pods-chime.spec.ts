// Section E of the checks: /pods follows its pods and sounds when one is ready.
import type { Page } from '@playwright/test'
import { answer, Requests } from './answers'
import { aPod, id } from './bodies'
import type { Pod } from './client'
import { expect, test } from './fixture'

/** Notes every sound that the page plays, in place of a loudspeaker. */
async function listen(page: Page): Promise<{ src: string; volume: number }[]> {
  const sounds: { src: string; volume: number }[] = []
  await page.exposeFunction('heard', (src: string, volume: number) => sounds.push({ src, volume }))
  await page.addInitScript(() => {
    HTMLMediaElement.prototype.play = function () {
      Reflect.get(window, 'heard')(this.src, this.volume)
      return Promise.resolve()
    }
  })
  return sounds
}

const pod = (name: string, status: Pod['status']): Pod =>
  aPod({ id: id(name), gpu_type: name, status, progress: 10, ready_at: null })

test('86 a pod that becomes ready sounds once at half volume, unless its chime is off', async ({
  page,
  visit,
  seeds,
}) => {
  const as = await seeds.hobby1()
  const sounds = await listen(page)
  let pods = [
    pod('FIRST', 'mounting'),
    pod('QUIET', 'mounting'),
    pod('NEXT', 'mounting'),
    pod('OLD', 'ready'),
  ]
  await answer(page, 'get', '/pods', () =>
    pods.map((each) => ({ ...each, team_id: as.teamId, created_by: as.userId })),
  )
  await answer(page, 'delete', '/pods/{id}', undefined)
  await page.clock.install()
  const requests = new Requests(page)
  await visit('/pods', { as })
  const card = (name: string) => page.getByRole('article', { name: `2x ${name}` })
  await card('QUIET').getByRole('switch').click()
  await page.clock.pauseAt(new Date(Date.now() + 10_000))

  // The clock stands still: answers need a few of its milliseconds to be drawn.
  const drawn = (name: string) =>
    expect(async () => {
      await page.clock.runFor(5)
      await expect(card(name).getByText('ssh -p')).toBeVisible({ timeout: 200 })
    }).toPass({ intervals: [10], timeout: 20_000 })

  const read = async () => {
    for (const before = requests.to('get', '/pods').length; requests.to('get', '/pods').length === before; )
      await page.clock.runFor(250)
  }

  // Read again after 30 s: one is ready.
  pods = [pod('FIRST', 'ready'), pod('QUIET', 'mounting'), pod('NEXT', 'mounting'), pod('OLD', 'ready')]
  await read()
  await drawn('FIRST')
  await expect.poll(() => sounds.length).toBe(1)
  expect(sounds[0]?.volume).toBe(0.5)
  expect(sounds[0]?.src).toMatch(/pod-ready|^data:audio/)

  // A deletion reads the list again within the same second: another is ready, and nothing sounds.
  pods = [pod('FIRST', 'ready'), pod('QUIET', 'mounting'), pod('NEXT', 'ready'), pod('OLD', 'deleting')]
  await card('OLD').getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('alertdialog').getByRole('button', { name: 'Delete' }).click()
  await drawn('NEXT')
  expect(sounds.length).toBe(1)

  // Its chime is off: it becomes ready in silence.
  pods = [pod('FIRST', 'ready'), pod('QUIET', 'ready'), pod('NEXT', 'ready')]
  await page.clock.runFor(2000)
  await read()
  await drawn('QUIET')
  expect(sounds.length).toBe(1)
})

test('87 the list is read every 30 s while a pod is on its way, and not once all are ready', async ({
  page,
  visit,
  seeds,
}) => {
  const as = await seeds.hobby1()
  let status: 'pending' | 'ready' = 'pending'
  await answer(page, 'get', '/pods', () => [aPod({ id: id('pod'), status })])
  await page.clock.install()
  const requests = new Requests(page)
  await visit('/pods', { as })
  await expect(page.getByText('Booting up instance').first()).toBeVisible()
  const before = requests.to('get', '/pods').length
  await page.clock.runFor(30_000)
  await expect.poll(() => requests.to('get', '/pods').length).toBe(before + 1)
  expect(new URL(requests.to('get', '/pods').at(-1)?.url() ?? '').search).toBe(`?team_id=${as.teamId}`)
  status = 'ready'
  await page.clock.runFor(30_000)
  await expect(page.getByText('ssh -p')).toBeVisible()
  const after = requests.to('get', '/pods').length
  await page.clock.runFor(5 * 60_000)
  expect(requests.to('get', '/pods').length).toBe(after)
})
