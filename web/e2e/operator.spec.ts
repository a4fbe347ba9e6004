// Beyond the checks: the operator's view of the clouds, machines, margins, jobs and books.
import type { Page } from '@playwright/test'
import { answer, hold, Requests, refuse } from './answers'
import { expect, test, widths } from './fixture'
import { expectAccessible, expectNoOverflow } from './looks'
import { aBadNight, anOverview, someMargins } from './operator-bodies'

const section = (page: Page, name: string) => page.getByRole('region', { name, exact: true })

/** A Homeport that does as the bodies say. */
async function stage(page: Page, overview = anOverview(), margins = someMargins()): Promise<void> {
  await answer(page, 'get', '/operator/overview', overview)
  await answer(page, 'get', '/operator/margins', (request) => {
    const days = Number(new URL(request.url()).searchParams.get('days') ?? 30)
    return days === margins.days ? margins : someMargins(days)
  })
}

test('an operator finds the page in the sidebar and in the palette, with the figures of this Homeport', async ({
  page,
  visit,
  seeds,
}) => {
  await visit('/pods', { as: await seeds.operator() })
  await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: "Operator's View" }).click()
  await expect(page).toHaveURL(/\/operator$/)
  await expect(page.getByRole('heading', { level: 1, name: "Operator's View" })).toBeFocused()
  await expect(page).toHaveTitle("Operator's View · Homeport")
  const clouds = section(page, 'Clouds').getByRole('table', { name: 'Clouds' })
  await expect(clouds.getByRole('row').filter({ hasText: 'Coldwharf' })).toContainText('Works')
  await expect(section(page, 'Machines')).toContainText('No machine is orphaned.')
  await expect(section(page, 'Margin')).toBeVisible()
  await expect(section(page, 'Books and storage')).toContainText('Ledger')
  await expectAccessible(page)
  await page.goto('/pods')
  await expect(page.getByRole('heading', { level: 1, name: 'Pods' })).toBeVisible()
  await page.keyboard.press('Control+k')
  await page.getByRole('combobox').fill('operator')
  await page.keyboard.press('Enter')
  await expect(page).toHaveURL(/\/operator$/)
})

test('nobody else learns that there is such a page: it is like any unknown path', async ({
  page,
  visit,
  seeds,
}) => {
  const requests = new Requests(page)
  const { admin } = await seeds.pro()
  for (const path of ['/no-such-page', '/operator']) {
    await visit(path, { as: admin })
    await expect(page, path).toHaveURL(/\/create$/)
    await expect(page.getByRole('heading', { level: 1, name: 'Create New Instance' })).toBeVisible()
    await expect(page.getByRole('link', { name: "Operator's View" })).toHaveCount(0)
  }
  expect(requests.to('get', '/operator/overview')).toEqual([])
  const info = await admin.call('GET', '/user/info')
  expect(await info.text()).not.toContain('operator')
  const path = await admin.call('GET', '/operator/overview')
  const unknown = await admin.call('GET', '/no/such/path')
  expect(path.status).toBe(404)
  expect(await path.json()).toMatchObject({ code: (await unknown.json()).code })
})

test('a visitor signs in first, and an operator comes back to the page', async ({ page, visit, seeds }) => {
  await visit('/operator')
  await expect(page).toHaveURL(
    (url) => url.pathname === '/auth' && url.searchParams.get('redirect') === '/operator',
  )
  await visit('/auth?redirect=/operator', { as: await seeds.operator() })
  await expect(page).toHaveURL(/\/operator$/)
})

test('all well is said in one line, and empty lists say that they are', async ({ page, visit, seeds }) => {
  await stage(page)
  await visit('/operator', { as: await seeds.operator() })
  await expect(page.getByRole('status').filter({ hasText: 'All well' })).toContainText(
    '2 clouds on sale, 5 machines for 5 pods.',
  )
  for (const text of [
    'No machine is orphaned.',
    'No machine is terminating for long.',
    'No machine is ambiguous.',
    'No job fails.',
  ]) {
    await expect(page.getByText(text, { exact: true })).toBeVisible()
  }
  await expect(section(page, 'Books and storage')).toContainText('12.4 GB wait to be deleted')
})

test('all well claims nothing that was not looked at, and refresh reads what is shown', async ({
  page,
  visit,
  seeds,
}) => {
  const fresh = anOverview()
  delete fresh.ledger
  fresh.jobs.given_up = 1
  await stage(page, fresh)
  const requests = new Requests(page)
  await visit('/operator', { as: await seeds.operator() })
  const well = page.getByRole('status').filter({ hasText: 'All well' })
  await expect(well).toContainText('no job given up in 24 hours, the books are not checked yet.')
  await section(page, 'Margin').getByRole('button', { name: '7 days' }).click()
  const ofWeek = () =>
    requests.to('get', '/operator/margins').filter((r) => r.url().endsWith('days=7')).length
  await expect.poll(ofWeek).toBe(1)
  await page.getByRole('button', { name: 'Refresh', exact: true }).click()
  await expect.poll(ofWeek).toBe(2)
})

test('what needs a hand comes first, the urgent before the rest, each with a link to where it is', async ({
  page,
  visit,
  seeds,
}) => {
  await stage(page, aBadNight())
  await visit('/operator', { as: await seeds.operator() })
  const hands = section(page, '10 things need a hand')
  await expect(hands.getByRole('listitem')).toHaveText([
    /^NowThe ledger does not add up2 rows wrong, -\$0\.000001 out of balance\. To see each, run: homeport ledger verifySee Books and storage$/,
    /^Now2 machines are orphaned/,
    /^Now1 machine has been ambiguous for more than 5 minutes/,
    /^Now1 machine has been terminating for more than 15 minutes/,
    /^Now1 pod has been in its last sync for more than a day.*homeport pod cut-off POD/,
    /^NowHyperstack is out of funds: its offers are off sale402 Payment Required/,
    /^NowPrime gives no good catalogue: its offers are hidden/,
    /^NowPrime is short of funds\$310\.00 last 14 h at the present burn\./,
    /^Now1 job was given up in the last 24 hoursmail\.send 1/,
    /^SoonThe balance at Prime could not be read503 from the API/,
  ])
  await hands.getByRole('link', { name: 'See Machines' }).first().click()
  await expect(section(page, 'Machines')).toBeFocused()
  await expect(section(page, 'Machines').getByRole('heading', { level: 2 })).toBeInViewport()

  const machines = section(page, 'Machines')
  const orphan = machines.getByRole('table', { name: 'Orphaned' }).getByRole('row').nth(1)
  await expect(orphan).toContainText('hp-7f3a-0c0ffee0-1')
  await expect(orphan).toContainText('18220417')
  await expect(orphan).toContainText('1 hour ago')
  await expect(orphan.locator('time')).toHaveAttribute('title', /\d{4}/)
  const terminating = machines.getByRole('table', { name: 'Terminating for more than 15 minutes' })
  await expect(terminating).toContainText('8x H100 80GB')
  await expect(terminating).toContainText('5b0c91d2-aaaa-4aaa-8aaa-000000000004')
  await expect(terminating).toContainText('500 Internal Server Error')
  await expect(machines.getByRole('table', { name: 'Ambiguous' })).toContainText('1x RTX A6000')
  const lastSyncs = machines.getByRole('table', { name: 'Last sync for more than a day' })
  await expect(lastSyncs).toContainText('3c77d0aa-aaaa-4aaa-8aaa-000000000006')

  const clouds = page.getByRole('table', { name: 'Clouds' })
  const broke = clouds.getByRole('row').filter({ hasText: 'Hyperstack' })
  await expect(broke).toContainText('Breaker open since 25 minutes ago')
  await expect(broke).toContainText('Next trial in 4 minutes')
  await expect(broke).toContainText('0 offers41 known, hidden')
  await expect(broke).toContainText('-$3.12')
  await expect(clouds.getByRole('row').filter({ hasText: 'Prime' })).toContainText(
    '7 ready, 3 slow, 4 failed, 2 bad host, 1 lost',
  )
})

test('a loss stands out by day, by cloud and by offer, and offers can be ordered', async ({
  page,
  visit,
  seeds,
}) => {
  await stage(page)
  await visit('/operator', { as: await seeds.operator() })
  const margin = section(page, 'Margin')
  const offers = margin.getByRole('table', { name: 'By offer' })
  const first = offers.getByRole('row').nth(1)
  await expect(first).toHaveText('2x L40SLossVast$10.50$13.70-$3.20-30.5%')
  await expect(first.getByText('-$3.20')).toHaveCSS('color', 'oklch(0.745 0.15 22)')
  await expect(offers.getByText('Loss')).toHaveCount(1)
  await expect(offers.getByRole('row')).toHaveCount(13)
  await expect(offers.getByRole('columnheader', { name: 'Margin', exact: true })).toHaveAttribute(
    'aria-sort',
    'ascending',
  )
  await offers.getByRole('button', { name: 'Users paid' }).press('Enter')
  await offers.getByRole('button', { name: 'Users paid' }).press('Enter')
  await expect(first).toContainText('8x L40S')
  await expect(offers.getByRole('columnheader', { name: 'Users paid' })).toHaveAttribute(
    'aria-sort',
    'descending',
  )
  await margin.getByRole('button', { name: 'Show all 16' }).click()
  await expect(offers.getByRole('row')).toHaveCount(17)

  await expect(margin.getByRole('table', { name: 'By cloud' }).getByRole('row').nth(1)).toHaveText(
    'HyperstackLoss$0.00$0.0004-$0.0004—',
  )
  const days = margin.getByRole('listbox', { name: 'By day' }).getByRole('option')
  await expect(days).toHaveCount(30)
  await expect(days.nth(25)).toHaveAccessibleName(
    /^\w+ \d+: Users paid \$12\.40, Upstream cost \$21\.75, Margin -\$9\.35$/,
  )
  await days.nth(29).focus()
  await page.keyboard.press('Home')
  await expect(days.nth(0)).toBeFocused()
  await margin.getByRole('button', { name: 'Show table' }).click()
  const table = margin.getByRole('table', { name: 'By day' })
  // The header, the days with money, and the sum.
  await expect(table.getByRole('row')).toHaveCount(31)
  await expect(table.getByRole('row').filter({ hasText: '-$9.35' })).toContainText('$12.40$21.75')
  await margin.getByRole('button', { name: '7 days' }).click()
  await expect(margin).toContainText('in the last 7 days (UTC)')
  await expect(table.getByRole('row')).toHaveCount(9)
})

test('what cannot be read is said, with a way to try again, and does not take the rest along', async ({
  page,
  visit,
  seeds,
}) => {
  await stage(page)
  await refuse(page, 'get', '/operator/margins', 500, 'The margins are not to be had.')
  await visit('/operator', { as: await seeds.operator() })
  const failed = section(page, 'Margin').getByRole('alert')
  await expect(failed).toContainText('Failed to fetch the margins')
  await expect(failed).toContainText('The margins are not to be had.')
  await expect(page.getByRole('status').filter({ hasText: 'All well' })).toBeVisible()
  await answer(page, 'get', '/operator/margins', someMargins())
  await failed.getByRole('button', { name: 'Try again' }).click()
  await expect(page.getByRole('table', { name: 'By offer' })).toBeVisible()
  await expect(failed).toHaveCount(0)

  await refuse(page, 'get', '/operator/overview', 500, 'The database does not answer.')
  await page.getByRole('button', { name: 'Refresh', exact: true }).click()
  const alert = page.getByRole('alert').filter({ hasText: 'Failed to fetch how Homeport does' })
  await expect(alert).toContainText('The database does not answer.')
  await expect(page.getByRole('table', { name: 'Clouds' })).toBeVisible()
  await page.reload()
  await expect(alert).toBeVisible()
  await expect(page.getByRole('table', { name: 'Clouds' })).toHaveCount(0)
  await answer(page, 'get', '/operator/overview', aBadNight())
  await alert.getByRole('button', { name: 'Try again' }).click()
  await expect(page.getByRole('heading', { level: 2, name: '10 things need a hand' })).toBeVisible()
  await expect(alert).toHaveCount(0)
})

test('the page reads again by itself, and shows its shape until the first answer', async ({
  page,
  visit,
  seeds,
}) => {
  await stage(page)
  await page.clock.install()
  let answers = 0
  await answer(page, 'get', '/operator/overview', () => (answers++ === 0 ? anOverview() : aBadNight()))
  const release = await hold(page, 'get', '/operator/overview')
  await visit('/operator', { as: await seeds.operator() })
  await expect(page.getByRole('heading', { level: 1, name: "Operator's View" })).toBeVisible()
  await expect(page.locator('main .animate-beat').first()).toBeVisible()
  release()
  await expect(page.getByText('All well')).toBeVisible()
  await page.clock.runFor(31_000)
  await expect(page.getByRole('heading', { level: 2, name: '10 things need a hand' })).toBeVisible()
})

test('at both widths axe finds nothing, and only a table scrolls sideways', async ({
  page,
  visit,
  seeds,
}) => {
  test.setTimeout(180_000)
  for (const [name, overview] of [
    ['well', anOverview()],
    ['bad', aBadNight()],
  ] as const) {
    await stage(page, overview)
    await visit('/operator', { as: await seeds.operator() })
    await expect(page.getByRole('table', { name: 'By offer' })).toBeVisible()
    for (const width of ['D', 'M'] as const) {
      await page.setViewportSize(widths[width])
      await expectNoOverflow(page)
      await expectAccessible(page)
      if (process.env.OPERATOR_SHOTS)
        await page.screenshot({ path: `${process.env.OPERATOR_SHOTS}/${name}-${width}.png`, fullPage: true })
    }
  }
  await expect(page.getByRole('list', { name: 'Clouds' }).getByRole('listitem').first()).toContainText(
    'Hyperstack',
  )
  await expect(page.getByRole('table', { name: 'Clouds' })).toHaveCount(0)
})
