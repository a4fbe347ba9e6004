// Beyond the checks: the monthly statements on /billing.
import { readFileSync } from 'node:fs'
import type { Page } from '@playwright/test'
import { answer, Requests, refuse } from './answers'
import { id } from './bodies'
import { expect, test } from './fixture'
import { expectAccessible, expectNoOverflow } from './looks'

const section = (page: Page) => page.getByRole('region', { name: 'Statements' })
const months = (page: Page) => section(page).getByRole('listitem')
const aMonth = (month: string, final = true) => ({
  month,
  final,
  opening_balance: 20,
  credits: 100,
  charges: 41.257,
  refunds: 0,
  debits: 0,
  closing_balance: 78.743,
})

test('this month has its statement as PDF and CSV, with the credit in it', async ({ page, visit, seeds }) => {
  await visit('/billing', { as: await seeds.hobby1() })
  await expect(months(page)).toHaveCount(1)
  await expect(months(page)).toContainText('So far')
  const save = async (name: RegExp) => {
    const waiting = page.waitForEvent('download')
    await section(page).getByRole('button', { name }).click()
    const file = await waiting
    return { name: file.suggestedFilename(), body: readFileSync(await file.path()) }
  }
  const csv = await save(/^CSV of /)
  expect(csv.name).toMatch(/^homeport-statement-\d{4}-\d\d\.csv$/)
  expect(csv.body.toString()).toMatch(/\r\nSummary,,credits,,,,,10\.00,,\r\n/)
  expect(csv.body.toString()).toMatch(
    /\r\nMoney,[^\r]+,credit,[^\r]+,10\.00,pi_[^\r]+,http[^\r]+\/test-checkout\/[^\r]+\r\n/,
  )
  const pdf = await save(/^PDF of /)
  expect(pdf.name).toMatch(/^homeport-statement-\d{4}-\d\d\.pdf$/)
  expect(pdf.body.subarray(0, 5).toString()).toBe('%PDF-')
})

for (const width of ['D', 'M'] as const) {
  test(`a year of statements folds, at ${width}`, async ({ page, visit, seeds }) => {
    const year = Array.from({ length: 12 }, (_, n) =>
      aMonth(`2027-${String(12 - n).padStart(2, '0')}`, n > 0),
    )
    await answer(page, 'get', '/wallet/statements', year)
    await visit('/billing', { as: await seeds.hobby1(), width })
    await expect(months(page)).toHaveCount(4)
    await expect(months(page).nth(0)).toHaveText(/^December 2027So far/)
    await expect(months(page).nth(1)).toHaveText(/^November 2027Charged\$41\.26Closing balance\$78\.74/)
    await expectNoOverflow(page)
    await expectAccessible(page)
    await section(page).getByRole('button', { name: 'Show all 12 months' }).click()
    await expect(months(page)).toHaveCount(12)
    await expect(section(page).getByRole('button', { name: 'PDF of January 2027' })).toBeVisible()
  })
}

test('what could not be read is told where it belongs', async ({ page, visit, seeds }) => {
  await refuse(page, 'get', '/wallet/statements', 500)
  await visit('/billing', { as: await seeds.hobby1() })
  await expect(section(page).getByText('Failed to fetch statements')).toBeVisible()
  await answer(page, 'get', '/wallet/statements', [aMonth('2027-03')])
  await section(page).getByRole('button', { name: 'Try again' }).click()
  await expect(months(page)).toHaveCount(1)
  await refuse(page, 'get', '/wallet/statements/{file}', 500)
  await section(page).getByRole('button', { name: 'PDF of March 2027' }).click()
  await expect(page.getByText('Failed to download the statement')).toBeVisible()
})

test('visitors see no statements', async ({ page, visit }) => {
  await visit('/billing')
  await expect(page.getByRole('heading', { name: 'Transaction History' })).toBeVisible()
  await expect(section(page)).toHaveCount(0)
})

const spend = [
  { key: id('9f3c1a77'), name: '2x H100 80GB, 9f3c1a77', pods: 31.2, storage: 0, total: 31.2 },
  {
    key: id('0ae5'),
    name: 'somebody-with-a-long-address@laboratory.university.example',
    pods: 38.2,
    storage: 1.5,
    total: 39.7,
  },
  { key: null, name: '', pods: 0.4, storage: 0, total: 0.4 },
]

for (const width of ['D', 'M'] as const) {
  test(`a month tells where its money went, what cost most first, at ${width}`, async ({
    page,
    visit,
    seeds,
  }) => {
    await answer(page, 'get', '/wallet/statements', [aMonth('2028-02')])
    await answer(page, 'get', '/wallet/spend', spend)
    const requests = new Requests(page)
    await visit('/billing', { as: await seeds.hobby1(), width })
    await section(page).getByRole('button', { name: 'Breakdown of February 2028' }).click()
    const dialog = page.getByRole('dialog', { name: 'Spend in February 2028' })
    await expect(dialog.getByRole('rowheader')).toHaveText([/^somebody-/, /^2x H100/, 'Not known', 'Total'])
    await expect(dialog.getByRole('row').last()).toHaveText('Total$71.30')
    const asked = new URL(requests.to('get', '/wallet/spend').at(-1)?.url() ?? '').searchParams
    expect([asked.get('by'), asked.get('from'), asked.get('to')]).toEqual(['pod', '2028-02-01', '2028-02-29'])
    await expectAccessible(page)
    await expectNoOverflow(page)
    await dialog.getByRole('tab', { name: 'Pods' }).focus()
    await page.keyboard.press('ArrowRight')
    await expect(dialog.getByRole('tab', { name: 'Members' })).toBeFocused()
    await expect(dialog.getByRole('table', { name: 'Members' })).toBeVisible()
    expect(requests.to('get', '/wallet/spend').at(-1)?.url()).toContain('by=member')
    await page.keyboard.press('Escape')
    await expect(section(page).getByRole('button', { name: 'Breakdown of February 2028' })).toBeFocused()
  })
}

test('a month without spend says so, and a failure says why', async ({ page, visit, seeds }) => {
  await visit('/billing', { as: await seeds.hobby() })
  const open = section(page).getByRole('button', { name: /^Breakdown of/ })
  await open.click()
  const dialog = page.getByRole('dialog', { name: /^Spend in/ })
  await expect(dialog).toContainText('Nothing was spent in this month.')
  await refuse(page, 'get', '/wallet/spend', 500, 'Something went wrong. Please try again.')
  await dialog.getByRole('tab', { name: 'Days' }).click()
  await expect(dialog.getByRole('alert')).toContainText('Failed to fetch the spend')
  await expect(dialog.getByRole('alert')).toContainText('Something went wrong. Please try again.')
  await page.unrouteAll()
  await dialog.getByRole('button', { name: 'Try again' }).click()
  await expect(dialog).toContainText('Nothing was spent in this month.')
})
