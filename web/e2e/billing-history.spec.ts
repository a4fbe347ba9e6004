// Section J of the checks: /billing, the transaction history.
import type { Page } from '@playwright/test'
import { answer, Requests } from './answers'
import { ago, aPod, aTransaction, aVolume, id } from './bodies'
import { expect, test } from './fixture'
import { expectAccessible } from './looks'

const ready = 'oklch(0.8 0.15 158)'
const tide = 'oklch(0.78 0.11 228)'
const labels = ['Date', 'Type', 'Amount', 'Description', 'Reference']
const tab = (page: Page, name: string) => page.getByRole('tab', { name, exact: true })
const legend = (page: Page, name: string) => page.getByRole('listitem').filter({ hasText: name })

const podRow = (n: number, amount = -1) =>
  aTransaction({
    id: id('74', n),
    transaction_type: 'charge',
    resource_type: 'pod-runtime',
    resource_id: id('pod', n),
    amount,
    description: `pod ${n}`,
  })
const volumeRow = (volume: number, n: number, amount: number, seconds: number) =>
  aTransaction({
    id: id('75', n),
    transaction_type: 'charge',
    resource_type: 'volume-storage',
    resource_id: id('70', volume),
    amount,
    created_at: ago(seconds),
    description: `storage ${n}`,
  })

test('171 three tabs, Credit Added first, with tab roles and arrow keys', async ({ page, visit, seeds }) => {
  await visit('/billing', { as: await seeds.hobby1() })
  const list = page.getByRole('tablist', { name: 'Transaction History' })
  await expect(list.getByRole('tab')).toHaveText(['Credit Added', 'Pod Transactions', 'Storage Transactions'])
  await expect(tab(page, 'Credit Added')).toHaveAttribute('aria-selected', 'true')
  await expect(page.getByRole('tabpanel', { name: 'Credit Added' })).toContainText('+$10.00')
  await tab(page, 'Credit Added').focus()
  await page.keyboard.press('ArrowRight')
  await expect(tab(page, 'Pod Transactions')).toBeFocused()
  await expect(tab(page, 'Pod Transactions')).toHaveAttribute('aria-selected', 'true')
  await expect(page.getByRole('tabpanel', { name: 'Pod Transactions' })).toBeVisible()
  await page.keyboard.press('ArrowRight')
  await expect(page.getByRole('tabpanel', { name: 'Storage Transactions' })).toBeVisible()
  await page.keyboard.press('Home')
  await expect(page.getByRole('tabpanel', { name: 'Credit Added' })).toBeVisible()
  await page.keyboard.press('ArrowLeft')
  await expect(page.getByRole('tabpanel', { name: 'Storage Transactions' })).toBeVisible()
})

test('a payment links its receipt, on the page of who took it', async ({ page, visit, seeds, homeport }) => {
  const as = await seeds.newcomer()
  const { checkout_url } = await as.post<{ checkout_url: string }>(
    `/wallet/credit/checkout?team_id=${as.teamId}`,
    {
      amount: 1234.5,
    },
  )
  await fetch(checkout_url, {
    method: 'POST',
    body: new URLSearchParams({ outcome: 'pay' }),
    redirect: 'manual',
  })
  const receipt = `${homeport.url}${new URL(checkout_url).pathname}/receipt`
  await answer(page, 'get', '/wallet/transactions', [
    aTransaction({
      id: id('a'),
      amount: 1234.5,
      description: 'by card',
      reference_id: 'pi_1',
      receipt_url: receipt,
    }),
    aTransaction({ id: id('b'), amount: 5, description: 'goodwill' }),
  ])
  await visit('/billing', { as })
  await expect(page.getByRole('row', { name: /goodwill/ }).getByRole('link')).toHaveCount(0)
  const opened = page.waitForEvent('popup')
  await page
    .getByRole('row', { name: /by card/ })
    .getByRole('link', { name: 'Receipt' })
    .click()
  const popup = await opened
  await expect(popup.getByRole('heading', { name: 'Receipt' })).toBeVisible()
  await expect(popup.getByRole('row', { name: /Paid by test card/ })).toContainText('$1,234.50')
  await expectAccessible(popup)
  await expectAccessible(page)
})

test('171a debits and refunds without a resource are on Credit Added', async ({ page, visit, seeds }) => {
  await answer(page, 'get', '/wallet/transactions', [
    aTransaction({ id: id('a'), transaction_type: 'debit', amount: -7, description: 'card refund' }),
    aTransaction({ id: id('b'), transaction_type: 'refund', amount: 2, description: 'goodwill' }),
    { ...podRow(1), transaction_type: 'refund', amount: 3, description: 'pod given back' },
  ])
  await visit('/billing', { as: await seeds.hobby1() })
  await expect(page.getByRole('row')).toHaveCount(3)
  await expect(page.getByRole('row', { name: /card refund/ })).toContainText('-$7.00')
  await expect(page.getByRole('row', { name: /goodwill/ })).toContainText('+$2.00')
  await tab(page, 'Pod Transactions').click()
  await expect(page.getByRole('row', { name: /pod given back/ })).toContainText('+$3.00')
})

test('172 a thousand transactions are asked for and shown newest first', async ({ page, visit, seeds }) => {
  const h1 = await seeds.hobby1()
  const requests = new Requests(page)
  await answer(page, 'get', '/wallet/transactions', [
    aTransaction({ id: id('a'), created_at: '2026-11-02T10:00:00Z', description: 'second' }),
    aTransaction({ id: id('b'), created_at: '2026-11-03T10:00:00Z', description: 'first' }),
    aTransaction({ id: id('c'), created_at: '2026-11-01T10:00:00Z', description: 'third' }),
  ])
  await visit('/billing', { as: h1 })
  const cells = page.getByRole('row').filter({ has: page.getByRole('cell') })
  await expect(cells).toHaveText([/first/, /second/, /third/])
  expect(new URL(requests.to('get', '/wallet/transactions')[0]?.url() ?? '').search).toBe(
    `?team_id=${h1.teamId}&limit=1000`,
  )
})

test("173a the badge's text is the type", async ({ page, visit, seeds }) => {
  const types = ['credit', 'charge', 'refund', 'debit'] as const
  await answer(
    page,
    'get',
    '/wallet/transactions',
    types.map((transaction_type, n) => aTransaction({ id: id('a', n), transaction_type, description: '' })),
  )
  await visit('/billing', { as: await seeds.hobby1() })
  for (const type of types) await expect(page.getByRole('cell', { name: type, exact: true })).toBeVisible()
})

test('173 columns in a table at D, the same labels in cards at M', async ({ page, visit, seeds }) => {
  const h1 = await seeds.hobby1()
  await visit('/billing', { as: h1, width: 'D' })
  const table = page.getByRole('table', { name: 'Credit Added' })
  await expect(table.getByRole('columnheader')).toHaveText(labels)
  const row = table.getByRole('row').filter({ hasText: '+$10.00' })
  await expect(row.getByRole('cell').first()).toContainText(/\d{4}.*(now|ago)/)
  await visit('/billing', { as: h1, width: 'M' })
  await expect(page.getByRole('table', { name: 'Credit Added' })).toHaveCount(0)
  const card = page.getByRole('list', { name: 'Credit Added' }).getByRole('listitem')
  await expect(card).toHaveCount(1)
  await expect(card.getByRole('term')).toHaveText(labels)
  await expect(card.getByRole('definition').nth(2)).toHaveText('+$10.00')
})

test('174 amounts are signed and references short', async ({ page, visit, seeds }) => {
  const rows = [
    [5, '1a2b3c4d5e', '+$5.00', 'ref-1a2b3c4d'],
    [0, null, '+$0.00', '-'],
    [-1.234, '', '-$1.23', '-'],
    [-0.0004, 'abc', '-$0.00', 'ref-abc'],
    [1234.5, '12345678', '+$1,234.50', 'ref-12345678'],
  ] as const
  await answer(
    page,
    'get',
    '/wallet/transactions',
    rows.map(([amount, reference_id], n) =>
      aTransaction({ id: id('a', n), amount, reference_id, created_at: ago(60 * (n + 1)) }),
    ),
  )
  await visit('/billing', { as: await seeds.hobby1() })
  for (const [index, [, , amount, reference]] of rows.entries()) {
    const cells = page
      .getByRole('row')
      .nth(index + 1)
      .getByRole('cell')
    await expect(cells.nth(2)).toHaveText(amount)
    await expect(cells.nth(4)).toHaveText(reference)
  }
})

test('175 legend and the green dot of an active pod', async ({ page, visit, seeds }) => {
  await answer(page, 'get', '/wallet/transactions', [podRow(1), podRow(2), podRow(3)])
  await answer(page, 'get', '/pods', [
    aPod({ id: id('pod', 1) }),
    aPod({ id: id('pod', 2), status: 'deleted' }),
  ])
  await visit('/billing', { as: await seeds.hobby1() })
  await expect(legend(page, 'Active Pod')).toHaveCount(0)
  for (const name of ['Storage Transactions', 'Pod Transactions']) {
    await tab(page, name).click()
    await expect(legend(page, 'Active Pod').locator('span')).toHaveCSS('background-color', ready)
    await expect(legend(page, 'Active Volume').locator('span')).toHaveCSS('background-color', tide)
  }
  const dot = (n: number) =>
    page.getByRole('row', { name: new RegExp(`pod ${n}`) }).getByRole('img', { name: 'Active Pod' })
  await expect(dot(1)).toHaveCSS('background-color', ready)
  await expect(dot(2)).toHaveCount(0)
  await expect(dot(3)).toHaveCount(0)
})

test('176 storage is grouped by volume, and details open and close', async ({ page, visit, seeds }) => {
  await answer(page, 'get', '/wallet/transactions', [
    volumeRow(1, 1, -0.1, 90_000),
    volumeRow(2, 2, -1, 3600),
    volumeRow(1, 3, -0.2, 7200),
  ])
  await answer(page, 'get', '/volumes', [aVolume({ id: id('70', 1) })])
  await visit('/billing?tab=storage', { as: await seeds.hobby1() })
  const groups = page
    .getByRole('tabpanel')
    .getByRole('listitem')
    .filter({ has: page.getByRole('heading') })
  await expect(groups).toHaveCount(2)
  const [newest, other] = [groups.nth(0), groups.nth(1)]
  await expect(newest.getByRole('heading')).toHaveText(`Volume ${id('70', 2)}`)
  await expect(newest.getByText('Total: -$1.00', { exact: true })).toBeVisible()
  await expect(newest.getByRole('img', { name: 'Active Volume' })).toHaveCount(0)
  await expect(other.getByRole('heading')).toHaveText(`Volume ${id('70', 1)}`)
  await expect(other.getByText('Total: -$0.30', { exact: true })).toBeVisible()
  await expect(other.getByRole('img', { name: 'Active Volume' })).toHaveCSS('background-color', tide)
  await expect(other.getByRole('table')).toHaveCount(0)
  await other.getByRole('button', { name: 'Show Details' }).click()
  await expect(newest.getByRole('table')).toHaveCount(0)
  const rows = other.getByRole('row').filter({ has: page.getByRole('cell') })
  await expect(rows).toHaveText([/storage 3/, /storage 1/])
  await other.getByRole('button', { name: 'Hide Details' }).click()
  await expect(other.getByRole('table')).toHaveCount(0)
  await expect(other.getByRole('button', { name: 'Show Details' })).toBeVisible()
})

test('177 empty tabs say so and what fills them', async ({ page, visit, seeds }) => {
  await visit('/billing', { as: await seeds.hobby() })
  const panel = page.getByRole('tabpanel')
  await expect(panel.getByText('No credit transactions yet')).toBeVisible()
  await expect(panel.getByText('Add some credit to get started')).toBeVisible()
  await tab(page, 'Pod Transactions').click()
  await expect(panel.getByText('No pod transactions yet')).toBeVisible()
  await expect(panel.getByText('Pod transactions will appear here when you run instances')).toBeVisible()
  await tab(page, 'Storage Transactions').click()
  await expect(panel.getByText('No storage transactions yet')).toBeVisible()
  await expect(panel.getByText('Storage transactions will appear here when you create volumes')).toBeVisible()
})
