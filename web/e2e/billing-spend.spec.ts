// Beyond the checks: the spend of 30 days on /billing, and the export.
import { readFileSync } from 'node:fs'
import { answer } from './answers'
import { aTransaction, id } from './bodies'
import type { Transaction } from './client'
import { expect, test } from './fixture'
import { expectAccessible, expectNoOverflow } from './looks'

const day = 86_400_000
/** An instant of an earlier UTC day. */
const daysAgo = (days: number) => new Date(Date.now() - days * day).toISOString()
const usage = (kind: 'pod-runtime' | 'volume-storage', days: number, amount: number): Transaction =>
  aTransaction({
    id: id(kind, days),
    transaction_type: 'charge',
    resource_type: kind,
    resource_id: id(kind),
    created_at: daysAgo(days),
    amount,
    description: `2x H100 80GB, "night" ${days}`,
  })
const rows = [
  aTransaction({ amount: 100, description: '=cmd()', reference_id: 'pi_1', created_at: daysAgo(3) }),
  usage('pod-runtime', 0, -3.25),
  usage('volume-storage', 0, -0.05),
  usage('pod-runtime', 2, -12.5),
  usage('pod-runtime', 29, -1),
  usage('pod-runtime', 30, -500),
]

test('the chart sums each day, and the arrow keys go through the days', async ({ page, visit, seeds }) => {
  await answer(page, 'get', '/wallet/transactions', rows)
  await visit('/billing', { as: await seeds.hobby1() })
  await expect(page.getByText('Total $16.80')).toBeVisible()
  const chart = page.getByRole('listbox', { name: 'Spend in 30 days' })
  const bars = chart.getByRole('option')
  await expect(bars).toHaveCount(30)
  await expect(bars.nth(29)).toHaveAccessibleName(/: Pods \$3\.25, Storage \$0\.05$/)
  await expect(bars.nth(0)).toHaveAccessibleName(/: Pods \$1\.00, Storage \$0\.00$/)
  await page.getByRole('button', { name: 'Show table' }).focus()
  await page.keyboard.press('Tab')
  await expect(bars.nth(29)).toBeFocused()
  await expect(bars.nth(29)).toHaveCSS('outline-width', '2px')
  await expect(page.getByText(/^\w+ \d+: Pods \$3\.25, Storage \$0\.05$/)).toBeVisible()
  await page.keyboard.press('ArrowLeft')
  await page.keyboard.press('ArrowLeft')
  await expect(bars.nth(27)).toBeFocused()
  await expect(page.getByText(/^\w+ \d+: Pods \$12\.50, Storage \$0\.00$/)).toBeVisible()
  await page.keyboard.press('Home')
  await expect(bars.nth(0)).toBeFocused()
  await page.keyboard.press('ArrowLeft')
  await expect(bars.nth(0)).toBeFocused()
  await page.keyboard.press('Tab')
  await expect(page.getByText('Total $16.80')).toBeVisible()
})

test('the higher day has the higher bar', async ({ page, visit, seeds }) => {
  await answer(page, 'get', '/wallet/transactions', rows)
  await visit('/billing', { as: await seeds.hobby1() })
  const bars = page.getByRole('option')
  await expect(bars).toHaveCount(30)
  const height = async (index: number) =>
    (await bars.nth(index).locator('rect').nth(1).boundingBox())?.height ?? 0
  expect(await height(27)).toBeGreaterThan(3 * (await height(29)))
  expect(await height(29)).toBeGreaterThan(2 * (await height(0)))
  expect(await height(0)).toBeGreaterThan(1)
  expect(await height(10)).toBe(0)
})

test('the table says the same as the chart', async ({ page, visit, seeds }) => {
  await answer(page, 'get', '/wallet/transactions', rows)
  await visit('/billing', { as: await seeds.hobby1() })
  await page.getByRole('button', { name: 'Show table' }).click()
  const table = page.getByRole('table', { name: 'Spend in 30 days' })
  await expect(table.getByRole('columnheader')).toHaveText(['Day (UTC)', 'Pods', 'Storage', 'Total'])
  await expect(table.getByRole('row')).toHaveText([
    /^Day/,
    /\$3\.25\$0\.05\$3\.30$/,
    /\$12\.50\$0\.00\$12\.50$/,
    /\$1\.00\$0\.00\$1\.00$/,
    'Total$16.75$0.05$16.80',
  ])
  await page.getByRole('button', { name: 'Show chart' }).click()
  await expect(page.getByRole('listbox')).toBeVisible()
})

test('nothing spent is said, not drawn', async ({ page, visit, seeds }) => {
  await visit('/billing', { as: await seeds.hobby1() })
  const none = page.getByText('Nothing spent in the last 30 days')
  await expect(none).toBeVisible()
  expect((await none.boundingBox())?.height, 'it does not push the history away').toBeLessThan(64)
  await expect(page.getByRole('option')).toHaveCount(0)
  await expect(page.getByRole('button', { name: 'Show table' })).toHaveCount(0)
  await visit('/billing', { as: await seeds.hobby1(), width: 'M' })
  await expectNoOverflow(page)
})

test('a full list says that older rows may be missing', async ({ page, visit, seeds }) => {
  await answer(
    page,
    'get',
    '/wallet/transactions',
    Array.from({ length: 1000 }, (_, n) => ({ ...usage('pod-runtime', n % 30, -0.01), id: id('f', n) })),
  )
  await visit('/billing', { as: await seeds.hobby1() })
  await expect(page.getByText('From the newest 1,000 transactions.')).toBeVisible()
  await expect(page.getByText('Total $10.00')).toBeVisible()
  await page.getByRole('tab', { name: 'Pod Transactions' }).click()
  const table = page.getByRole('table', { name: 'Pod Transactions' })
  await expect(table.getByRole('row')).toHaveCount(101)
  await page.getByRole('button', { name: 'Show all 1000 transactions' }).click()
  await expect(table.getByRole('row')).toHaveCount(1001)
})

test('the export has every row, exact, in UTC, and no formula', async ({ page, visit, seeds }) => {
  await answer(page, 'get', '/wallet/transactions', rows)
  await visit('/billing', { as: await seeds.hobby1() })
  const begun = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Export CSV' }).click()
  const download = await begun
  expect(download.suggestedFilename()).toMatch(/^homeport-transactions-[0-9a-f]{8}-\d{4}-\d\d-\d\d\.csv$/)
  const lines = readFileSync(await download.path(), 'utf8').split('\r\n')
  expect(lines).toHaveLength(rows.length + 2)
  expect(lines[0]).toBe(
    'Date (UTC),Type,Amount (USD),Description,Reference,Resource Type,Resource Id,Transaction Id',
  )
  expect(lines.find((line) => line.includes('100.00'))).toContain(",credit,100.00,'=cmd(),pi_1,")
  expect(lines.find((line) => line.includes('-12.50'))).toContain('"2x H100 80GB, ""night"" 2"')
  const dates = lines.slice(1, -1).map((line) => line.split(',')[0] ?? '')
  expect(dates).toEqual([...dates].sort().reverse())
})

test('an export of nothing is not offered', async ({ page, visit, seeds }) => {
  await visit('/billing', { as: await seeds.hobby() })
  await expect(page.getByText('No credit transactions yet')).toBeVisible()
  await expect(page.getByRole('button', { name: 'Export CSV' })).toBeDisabled()
})

test('chart, table and open groups are accessible at both widths', async ({ page, visit, seeds }) => {
  await answer(page, 'get', '/wallet/transactions', rows)
  for (const width of ['D', 'M'] as const) {
    await visit('/billing?tab=storage', { as: await seeds.hobby1(), width })
    await expect(page.getByRole('listbox')).toBeVisible()
    await page.getByRole('button', { name: 'Show Details' }).click()
    await expectAccessible(page)
    await expectNoOverflow(page)
    await page.getByRole('button', { name: 'Show table' }).click()
    await expectAccessible(page)
    await expectNoOverflow(page)
  }
})
