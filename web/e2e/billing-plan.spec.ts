// Beyond the checks: plan, seats, spend limit and portal on /billing.
import type { Page } from '@playwright/test'
import { answer, hold, Requests, refuse } from './answers'
import { aBalance } from './bodies'
import type { Client } from './client'
import { expect, test } from './fixture'
import { expectAccessible, expectNoOverflow } from './looks'

const section = (page: Page) => page.getByRole('region', { name: 'Plan and limits' })
const row = (page: Page, name: string) => section(page).getByRole('listitem').filter({ hasText: name })
const act = (page: Page, name: string) => section(page).getByRole('button', { name })
const dialog = (page: Page, name: string) => page.getByRole('dialog', { name })

interface Plan {
  member_count: number
  ends: boolean
}
const planOf = (admin: Client, team: string) => admin.get<Plan>(`/teams/${team}/subscription`)

test('seats are raised and lowered, and what they cost is said before', async ({ page, visit, seeds }) => {
  const admin = await seeds.newcomer('founder')
  const team = await seeds.proTeam(admin, 'North Quay', 2)
  await visit('/billing#plan', { as: admin, team })
  await expect(row(page, 'Pro plan')).toContainText('$200/month · 2 seats, 1 taken')
  await expect(row(page, 'Pro plan')).toContainText(/Paid until .+, then again for a month\./)
  await expect(section(page)).toBeInViewport()

  await act(page, 'Change seats').focus()
  await page.keyboard.press('Enter')
  const seats = dialog(page, 'Change Seats')
  await expect(seats.getByLabel('Seats', { exact: true })).toBeFocused()
  await expect(seats.getByRole('button', { name: /^Pay/ })).toBeDisabled()
  await seats.getByRole('button', { name: 'One seat more' }).click()
  await seats.getByRole('button', { name: 'One seat more' }).click()
  await expect(seats).toContainText('Now2 × $100$200/month')
  await expect(seats).toContainText('Then4 × $100$400/month')
  await expect(seats).toContainText('The rest of this month is charged at once.')
  const release = await hold(page, 'patch', '/teams/{id}/subscription')
  await seats.getByLabel('Seats', { exact: true }).press('Enter')
  await expect(seats.getByRole('button', { name: 'Changing seats...' })).toBeDisabled()
  release()
  await expect(page.getByText('The team has 4 seats now.')).toBeVisible()
  await expect(seats).toHaveCount(0)
  await expect(act(page, 'Change seats')).toBeFocused()
  await expect(row(page, 'Pro plan')).toContainText('$400/month · 4 seats, 1 taken')
  expect((await planOf(admin, team)).member_count).toBe(4)

  await act(page, 'Change seats').click()
  await seats.getByLabel('Seats', { exact: true }).fill('1')
  await expect(seats.getByRole('button', { name: 'One seat fewer' })).toBeDisabled()
  await expect(seats).toContainText(/You pay less from .+ on\./)
  await seats.getByRole('button', { name: 'Pay $100/month for 1 seat' }).click()
  await expect(page.getByText('The team has 1 seat now.')).toBeVisible()
  expect((await planOf(admin, team)).member_count).toBe(1)
})

test('seats that are taken stay, and numbers that are none are told', async ({ page, visit, seeds }) => {
  const { admin, id: team } = await seeds.pro()
  await visit('/billing', { as: admin })
  await act(page, 'Change seats').click()
  const seats = dialog(page, 'Change Seats')
  const field = seats.getByLabel('Seats', { exact: true })
  const pay = seats.getByRole('button', { name: /^Pay/ })
  for (const [typed, told] of [
    ['3', '4 seats are taken by members and pending invitations. Remove some first.'],
    ['', 'Please enter a whole number'],
    ['4.5', 'Please enter a whole number'],
    ['101', 'A team has at most 100 seats'],
  ] as const) {
    await field.fill(typed)
    await expect(seats.getByRole('alert')).toHaveText(told)
    await expect(pay).toBeDisabled()
  }
  // Somebody else may have invited meanwhile: the server has the last word.
  await refuse(page, 'patch', '/teams/{id}/subscription', 409, '6 seats are taken. Remove some first.')
  await field.fill('6')
  await pay.click()
  await expect(seats.getByRole('alert')).toHaveText('6 seats are taken. Remove some first.')
  await page.keyboard.press('Escape')
  await expect(seats).toHaveCount(0)
  expect((await planOf(admin, team)).member_count).toBe(5)
})

test('a declined card buys no seats, and it is said what to do', async ({ page, visit, seeds }) => {
  const admin = await seeds.newcomer('founder')
  const team = await seeds.proTeam(admin, 'Thin Wallet', 2, 'pay_once')
  await visit('/billing', { as: admin, team })
  await act(page, 'Change seats').click()
  const seats = dialog(page, 'Change Seats')
  await seats.getByLabel('Seats', { exact: true }).fill('5')
  await seats.getByRole('button', { name: 'Pay $500/month for 5 seats' }).click()
  await expect(seats.getByRole('alert')).toHaveText(
    'The payment for the new seats was declined. Nothing was changed. Check the card under Cards and invoices, then try again.',
  )
  expect((await planOf(admin, team)).member_count).toBe(2)
})

test('a subscription is ended knowingly, and the end taken back', async ({ page, visit, seeds }) => {
  const admin = await seeds.newcomer('founder')
  const team = await seeds.proTeam(admin, 'Second Thoughts', 1)
  await visit('/billing', { as: admin, team })
  const end = dialog(page, 'End Subscription')
  await act(page, 'End subscription').click()
  await expect(end).toContainText(/Everything stays as it is until .+: that is paid for\./)
  await expect(end.getByRole('listitem')).toHaveCount(4)
  await end.getByRole('button', { name: 'Keep Pro' }).click()
  expect((await planOf(admin, team)).ends).toBe(false)

  await refuse(
    page,
    'delete',
    '/teams/{id}/subscription',
    503,
    'The payment provider cannot be reached. Please try again.',
  )
  await act(page, 'End subscription').click()
  await end.getByRole('button', { name: 'End subscription' }).click()
  await expect(end.getByRole('alert')).toHaveText('The payment provider cannot be reached. Please try again.')
  await page.unrouteAll()
  await end.getByRole('button', { name: 'End subscription' }).click()
  await expect(page.getByText(/^The subscription ends on /)).toBeVisible()
  await expect(end).toHaveCount(0)
  await expect(row(page, 'Pro plan')).toContainText('Ends')
  await expect(row(page, 'Pro plan')).toContainText(
    /Paid until .+\. Then it ends and the team goes on with Hobby\./,
  )
  expect((await planOf(admin, team)).ends).toBe(true)
  await expectAccessible(page)

  await refuse(page, 'post', '/teams/{id}/subscription/resume', 409, 'This team has no subscription.')
  await act(page, 'Keep Pro').click()
  const alert = page.getByRole('alert')
  await expect(alert).toContainText('Failed to take back the end of the subscription')
  await expect(alert).toContainText('This team has no subscription.')
  await page.unrouteAll()
  await act(page, 'Keep Pro').click()
  await expect(page.getByText('The subscription goes on.')).toBeVisible()
  await expect(act(page, 'End subscription')).toBeVisible()
  expect((await planOf(admin, team)).ends).toBe(false)
})

test('the portal opens in the same tab, and a refusal says why', async ({ page, visit, seeds, homeport }) => {
  const { admin } = await seeds.pro()
  await visit('/billing', { as: admin })
  await act(page, 'Open portal').click()
  const alert = page.getByRole('alert')
  await expect(alert).toContainText('Failed to open the portal')
  await expect(alert).toContainText('The test checkout has no page for cards and invoices.')
  await answer(page, 'post', '/teams/{id}/billing-portal', { portal_url: `${homeport.url}/robots.txt` })
  await act(page, 'Open portal').click()
  await expect(page).toHaveURL(/\/robots\.txt$/)
  expect(page.context().pages()).toHaveLength(1)
})

test('a page that the Back button gives back can leave again', async ({ page, visit, seeds, homeport }) => {
  await answer(page, 'post', '/teams/{id}/billing-portal', { portal_url: `${homeport.url}/billing#stay` })
  await answer(page, 'post', '/wallet/card', { checkout_url: `${homeport.url}/billing#stay` })
  await visit('/billing', { as: (await seeds.pro()).admin })
  for (const name of ['Open portal', 'Save a card']) {
    await act(page, name).click()
    await expect(act(page, name)).toBeDisabled()
    await page.evaluate(() => dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true })))
    await expect(act(page, name)).toBeEnabled()
  }
})

test('a dialog stays until it is known what became of its change', async ({ page, visit, seeds }) => {
  const { admin, name } = await seeds.pro()
  const failed = async (
    open: string,
    change: () => Promise<void>,
    method: 'patch' | 'delete',
    path: '/teams/{id}' | '/teams/{id}/subscription',
  ) => {
    await page.getByRole('button', { name: open }).click()
    await refuse(page, 'patch', '/teams/{id}', 503, 'Not now.')
    await refuse(page, method, '/teams/{id}/subscription', 503, 'Not now.')
    const release = await hold(page, method, path)
    await change()
    const box = page.getByRole('dialog')
    await expect(box.getByRole('button', { name: 'Close' })).toBeDisabled()
    await page.keyboard.press('Escape')
    await page.mouse.click(2, 2)
    await expect(box).toBeVisible()
    release()
    await expect(box.getByRole('alert')).toContainText('Not now.')
    await page.unrouteAll()
    await page.keyboard.press('Escape')
    await expect(box).toHaveCount(0)
    await page.getByRole('button', { name: open }).click()
    await expect(box.getByRole('alert'), 'an old refusal').toHaveCount(0)
    await page.keyboard.press('Escape')
  }
  await visit('/billing', { as: admin })
  const box = page.getByRole('dialog')
  await failed(
    'Change seats',
    async () => {
      await box.getByRole('button', { name: 'One seat more' }).click()
      await box.getByRole('button', { name: /^Pay/ }).click()
    },
    'patch',
    '/teams/{id}/subscription',
  )
  await failed(
    'End subscription',
    () => box.getByRole('button', { name: 'End subscription' }).click(),
    'delete',
    '/teams/{id}/subscription',
  )
  await failed(
    'Change limit',
    async () => {
      await box.getByLabel('Limit per month (USD)').fill('20')
      await box.getByRole('button', { name: 'Set limit' }).click()
    },
    'patch',
    '/teams/{id}',
  )
  await visit('/teams', { as: admin })
  await failed(
    'Rename team',
    async () => {
      await box.getByLabel('Team name').fill(`${name} 2`)
      await page.keyboard.press('Enter')
    },
    'patch',
    '/teams/{id}',
  )
})

test('what is not known of a subscription and a balance is not made up', async ({ page, visit, seeds }) => {
  const plan = {
    status: 'active' as const,
    member_count: 5,
    seats_taken: 4,
    seat_price: 100,
    ends: false,
    period_end_at: null,
  }
  await answer(page, 'get', '/teams/{id}/subscription', plan)
  await refuse(page, 'get', '/wallet/balance', 500)
  await visit('/billing', { as: (await seeds.pro()).admin })
  await expect(row(page, 'Monthly spend limit')).toContainText('Failed to fetch wallet balance')
  await act(page, 'Change seats').click()
  const seats = dialog(page, 'Change Seats')
  await seats.getByLabel('Seats', { exact: true }).fill('4')
  await expect(seats).toContainText('You pay less from the next month on.')
  await seats.getByLabel('Seats', { exact: true }).fill('3')
  await expect(seats.getByRole('alert')).toBeVisible()
  await expect(seats).not.toContainText('The team has as many already.')
  await page.keyboard.press('Escape')
  await act(page, 'End subscription').click()
  await expect(dialog(page, 'End Subscription')).toContainText(
    'Everything stays as it is until the end of the month that is paid for. Then',
  )
})

test('a spend limit is set, lowered by what is told, and removed', async ({ page, visit, seeds }) => {
  const admin = await seeds.newcomer('founder')
  const team = await seeds.proTeam(admin, 'Frugal', 1)
  const limit = async () =>
    (await admin.get<{ month_limit: number }>(`/wallet/balance?team_id=${team}&include_estimates=true`))
      .month_limit
  await visit('/billing', { as: admin, team })
  const limits = row(page, 'Monthly spend limit')
  await expect(limits).toContainText(/\$0\.00 of \$10,000\.00 spent in .+ \(UTC\)/)
  await expect(limits).toContainText("This is the plan's limit. You can set a lower one.")

  await act(page, 'Change limit').click()
  const ask = dialog(page, 'Monthly Spend Limit')
  const field = ask.getByLabel('Limit per month (USD)')
  await expect(field).toBeFocused()
  await expect(ask.getByRole('button', { name: 'Remove limit' })).toHaveCount(0)
  await field.fill('10000.01')
  await expect(ask.getByRole('alert')).toHaveText('The plan allows at most $10,000.00 per month.')
  await field.fill('0')
  await page.keyboard.press('Enter')
  await expect(ask.getByRole('alert')).toHaveText('Please enter an amount above $0')
  await field.fill('50.25')
  await page.keyboard.press('Enter')
  await expect(page.getByText('The team can spend $50.25 per month.')).toBeVisible()
  await expect(limits).toContainText('$0.00 of $50.25 spent in')
  await expect(limits).toContainText('Set by the team. The plan allows up to $10,000.00.')
  await expect(limits.getByRole('meter')).toHaveAttribute('aria-valuemax', '50.25')
  expect(await limit()).toBe(50.25)

  await act(page, 'Change limit').click()
  await refuse(
    page,
    'patch',
    '/teams/{id}',
    422,
    'The spend limit of this team can be at most $40 per month.',
  )
  await field.fill('45')
  await ask.getByRole('button', { name: 'Set limit' }).click()
  await expect(ask.getByRole('alert')).toHaveText(
    'The spend limit of this team can be at most $40 per month.',
  )
  await page.unrouteAll()
  await ask.getByRole('button', { name: 'Remove limit' }).click()
  await expect(page.getByText('The team can spend $10,000.00 per month.')).toBeVisible()
  await expect(limits).toContainText("This is the plan's limit.")
  expect(await limit()).toBe(10_000)
})

test('a limit below what is spent says that pods will stop', async ({ page, visit, seeds }) => {
  const { admin } = await seeds.pro()
  const month = { month_spent: 41.257, month_limit: 100, plan_limit: 10_000 }
  await answer(page, 'get', '/wallet/balance', aBalance(month))
  await visit('/billing', { as: admin })
  await expect(row(page, 'Monthly spend limit')).toContainText('$41.26 of $100.00 spent in')
  await act(page, 'Change limit').click()
  const ask = dialog(page, 'Monthly Spend Limit')
  await ask.getByLabel('Limit per month (USD)').fill('41')
  await expect(ask.getByRole('status')).toHaveText(
    '$41.26 is spent already this month: running pods will be switched off in an hour.',
  )
  await expectAccessible(page)
  await ask.getByLabel('Limit per month (USD)').fill('42')
  await expect(ask.getByRole('status')).toHaveText('')
})

for (const who of ['member', 'viewer'] as const) {
  test(`a ${who} sees plan and limit, and changes nothing`, async ({ page, visit, seeds }) => {
    const as = (await seeds.pro())[who]
    await visit('/billing', { as })
    await expect(section(page)).toContainText('Only admins of the team can change this.')
    await expect(row(page, 'Pro plan')).toContainText('$500/month · 5 seats, 4 taken')
    await expect(row(page, 'Monthly spend limit')).toContainText('of $10,000.00 spent in')
    await expect(section(page).getByRole('button')).toHaveCount(0)
    await expect(section(page)).not.toContainText('Cards and invoices')
  })
}

test('a personal team pays nothing each month', async ({ page, visit, seeds }) => {
  const requests = new Requests(page)
  await visit('/billing', { as: await seeds.hobby() })
  await expect(row(page, 'Hobby plan')).toContainText('Nothing to pay each month.')
  await expect(row(page, 'Monthly spend limit')).toContainText('of $1,000.00 spent in')
  expect(requests.to('get', '/teams/{id}/subscription')).toEqual([])
  await row(page, 'Hobby plan').getByRole('link', { name: 'See the plans' }).click()
  await expect(page).toHaveURL(/\/create-team$/)
})

test('what could not be read of the plan is told and read again', async ({ page, visit, seeds }) => {
  await refuse(page, 'get', '/teams/{id}/subscription', 500, 'Something went wrong. Please try again.')
  await visit('/billing', { as: (await seeds.pro()).admin })
  await expect(row(page, 'Pro plan').getByRole('alert')).toContainText('Failed to fetch the subscription')
  await expect(row(page, 'Pro plan').getByRole('alert')).toContainText('Something went wrong.')
  await page.unrouteAll()
  await row(page, 'Pro plan').getByRole('button', { name: 'Try again' }).click()
  await expect(row(page, 'Pro plan')).toContainText('$500/month')
})

test('visitors see no plan', async ({ page, visit }) => {
  await visit('/billing')
  await expect(page.getByRole('heading', { name: 'Transaction History' })).toBeVisible()
  await expect(page.getByText('Plan and limits')).toHaveCount(0)
})

for (const width of ['D', 'M'] as const) {
  test(`plan and its dialogs are accessible at ${width}`, async ({ page, visit, seeds }) => {
    await visit('/billing', { as: (await seeds.pro()).admin, width })
    await page.getByRole('link', { name: 'Plan and limits' }).click()
    await expect(section(page)).toBeInViewport()
    await expectNoOverflow(page)
    for (const name of ['Change seats', 'End subscription', 'Change limit']) {
      await act(page, name).click()
      await expect(page.getByRole('dialog')).toBeVisible()
      await expectAccessible(page)
      await expectNoOverflow(page)
      await page.keyboard.press('Escape')
      await expect(page.getByRole('dialog')).toHaveCount(0)
      await expect(act(page, name)).toBeFocused()
    }
    await expectAccessible(page)
  })
}
