// Section E of the checks: what a card of /pods says, and the way into a pod.
import type { Page } from '@playwright/test'
import { answer } from './answers'
import { ago, aPod, id } from './bodies'
import { expect, test } from './fixture'

/** A whole second: the page counts in seconds. */
function wholeNow(): Date {
  return new Date(Math.floor(Date.now() / 1000) * 1000)
}

const before = (now: Date, seconds: number) => new Date(now.getTime() - seconds * 1000).toISOString()
const card = (page: Page, type: string) => page.getByRole('article', { name: `2x ${type}` })

test('80 an uptime reads as d h m, h m s, m s or s', async ({ page, visit, seeds }) => {
  const now = wholeNow()
  const ages: [string, number, string][] = [
    ['DAYS', 26 * 3600 + 3 * 60, '1d 2h 3m'],
    ['HOURS', 3661, '1h 1m 1s'],
    ['MINUTES', 61, '1m 1s'],
    ['SECONDS', 9, '9s'],
  ]
  await answer(
    page,
    'get',
    '/pods',
    ages.map(([type, age]) => aPod({ id: id(type), gpu_type: type, created_at: before(now, age) })),
  )
  await page.clock.setFixedTime(now)
  await visit('/pods', { as: await seeds.hobby1() })
  for (const [type, , text] of ages) {
    await expect(card(page, type).getByText(text, { exact: true }).first()).toBeVisible()
  }
})

test('81 an uptime goes on each second', async ({ page, visit, seeds }) => {
  const now = wholeNow()
  await answer(page, 'get', '/pods', [aPod({ created_at: before(now, 3) })])
  await page.clock.install({ time: now })
  await visit('/pods', { as: await seeds.hobby1() })
  const up = page.getByRole('article').getByText(/^\d+m \d+s$/)
  await expect(page.getByRole('article')).toBeVisible()
  await page.clock.pauseAt(new Date(now.getTime() + 90_000))
  const seconds = async () => {
    const [, m, s] = /^(\d+)m (\d+)s$/.exec((await up.textContent()) ?? '') ?? []
    return Number(m) * 60 + Number(s)
  }
  await page.clock.runFor(1000)
  const first = await seconds()
  expect(first).toBeGreaterThanOrEqual(92)
  await page.clock.runFor(1000)
  await expect.poll(seconds).toBe(first + 1)
  await page.clock.runFor(1000)
  await expect.poll(seconds).toBe(first + 2)
})

test("82 a ready pod's card shows its ssh command", async ({ page, visit, seeds }) => {
  await answer(page, 'get', '/pods', [aPod({ id: '9f3c1a77-aaaa-4aaa-8aaa-000000000000', ssh_port: 30412 })])
  await visit('/pods', { as: await seeds.hobby1() })
  await expect(page.getByText('ssh -p 30412 root@9f3c1a77.pods.example')).toBeVisible()
})

test('83 copying puts the command on the clipboard and says so for 2 s', async ({
  page,
  visit,
  seeds,
  context,
}) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  await answer(page, 'get', '/pods', [aPod({ id: '9f3c1a77-aaaa-4aaa-8aaa-000000000000', ssh_port: 30412 })])
  await page.clock.install()
  await visit('/pods', { as: await seeds.hobby1() })
  const button = page.getByRole('button', { name: 'Copy SSH command' })
  await expect(button).toBeVisible()
  await page.clock.pauseAt(new Date(Date.now() + 60_000))
  await button.click()
  const toast = page.getByRole('status').filter({ hasText: 'Command copied to clipboard!' })
  await expect(toast).toBeVisible()
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(
    'ssh -p 30412 root@9f3c1a77.pods.example',
  )
  await page.clock.runFor(1999)
  await expect(toast).toBeVisible()
  await page.clock.runFor(1)
  await expect(toast).toHaveCount(0)
})

test('84 a pod on its way says when it will be there and offers the chime', async ({
  page,
  visit,
  seeds,
}) => {
  const coming = ['pending', 'starting', 'mounting'] as const
  await answer(
    page,
    'get',
    '/pods',
    coming.map((status) =>
      // The address of a machine that is being set up is no address yet.
      aPod({ id: id(status), gpu_type: status, status, progress: 0, ready_at: null, synced_at: null }),
    ),
  )
  await visit('/pods', { as: await seeds.hobby1() })
  for (const status of coming) {
    const one = card(page, status)
    await expect(one.getByText('Available in ~2-20 minutes (5 min avg)', { exact: true })).toBeVisible()
    await expect(one.getByRole('switch')).toBeVisible()
    await expect(one.getByText('ssh -p')).toHaveCount(0)
  }
})

test('85 the chime of each pod stays as it was set', async ({ page, visit, seeds }) => {
  await answer(
    page,
    'get',
    '/pods',
    ['QUIET', 'LOUD'].map((type) =>
      aPod({ id: id(type), gpu_type: type, status: 'mounting', progress: 5, ready_at: null }),
    ),
  )
  await visit('/pods', { as: await seeds.hobby1() })
  const chime = (type: string) => card(page, type).getByRole('switch')
  await expect(chime('QUIET')).toBeChecked()
  await chime('QUIET').click()
  await expect(chime('QUIET')).not.toBeChecked()
  await page.reload()
  await expect(chime('QUIET')).not.toBeChecked()
  await expect(chime('LOUD')).toBeChecked()
  await chime('QUIET').click()
  await page.reload()
  await expect(chime('QUIET')).toBeChecked()
})

test('a restore and a last sync show how far they are', async ({ page, visit, seeds }) => {
  await answer(page, 'get', '/pods', [
    aPod({ id: id('a'), gpu_type: 'RESTORING', status: 'mounting', progress: 61, ready_at: null }),
    aPod({ id: id('b'), gpu_type: 'SYNCING', status: 'deleting', progress: 40 }),
    aPod({ id: id('c'), gpu_type: 'NEVER_READY', status: 'deleting', progress: 0, ready_at: null }),
    aPod({ id: id('d'), gpu_type: 'SETTLED', progress: 100 }),
  ])
  await visit('/pods', { as: await seeds.hobby1() })
  const bar = (type: string) => card(page, type).getByRole('progressbar')
  await expect(bar('RESTORING')).toHaveAccessibleName('Restoring /workspace')
  await expect(bar('RESTORING')).toHaveAttribute('aria-valuenow', '61')
  await expect(bar('SYNCING')).toHaveAccessibleName('Final sync')
  await expect(bar('SYNCING')).toHaveAttribute('aria-valuenow', '40')
  await expect(bar('NEVER READY')).toHaveCount(0)
  await expect(bar('SETTLED')).toHaveCount(0)
})

test('a card says when its pod was made and how old its last sync is', async ({ page, visit, seeds }) => {
  const created = ago(7200)
  await answer(page, 'get', '/pods', [
    aPod({ id: id('a'), gpu_type: 'SYNCED', created_at: created, synced_at: ago(185) }),
    aPod({ id: id('b'), gpu_type: 'FRESH', synced_at: null }),
    aPod({ id: id('c'), gpu_type: 'GONE', status: 'deleted', ended_at: ago(3700) }),
  ])
  await visit('/pods', { as: await seeds.hobby1() })
  await expect(card(page, 'SYNCED').getByText('Synced 3 min ago')).toBeVisible()
  const made = card(page, 'SYNCED').getByText(/^Created .*\d{4}/)
  await expect(made).toHaveAttribute('datetime', created)
  await expect(card(page, 'FRESH').getByText(/Synced/)).toHaveCount(0)
  await expect(card(page, 'GONE').getByText('Ended 1 h ago')).toBeVisible()
})

test('a pod that was ended says why and where to go now', async ({ page, visit, seeds }) => {
  const ends: [string, string, string, string][] = [
    ['balance', 'Out of funds', 'Add funds', '/billing'],
    ['spend_limit', 'Spend limit reached', 'See your spending', '/billing'],
    ['setup_failed', 'Set-up failed', 'Choose another GPU', '/create'],
    ['machine_lost', 'Machine lost', 'Rent another pod', '/create'],
    ['volume_damaged', 'Volume damaged', 'Restore an earlier version', '/storage'],
  ]
  await answer(
    page,
    'get',
    '/pods',
    ends.map(([reason]) =>
      aPod({
        id: id(reason),
        gpu_type: reason,
        status: 'deleted',
        status_reason: reason,
        status_detail: `In words: ${reason}.`,
        ended_at: ago(5),
      }),
    ),
  )
  await visit('/pods', { as: await seeds.hobby1() })
  for (const [reason, title, link, to] of ends) {
    const one = card(page, reason.replace('_', ' '))
    await expect(one.getByText(title, { exact: true })).toBeVisible()
    await expect(one.getByText(`In words: ${reason}.`)).toBeVisible()
    await expect(one.getByRole('link', { name: link })).toHaveAttribute('href', to)
  }
})
