// Beyond the checks: automatic top-ups and the saved card on /billing.
import type { Page } from '@playwright/test'
import type { components } from '../src/api/schema.gen'
import { answer, Requests, refuse } from './answers'
import { ago } from './bodies'
import { expect, test } from './fixture'
import { expectAccessible, expectNoOverflow } from './looks'

type AutoTopUp = components['schemas']['AutoTopUp']

const section = (page: Page) => page.getByRole('region', { name: 'Plan and limits' })
const row = (page: Page, title: string) =>
  section(page)
    .getByRole('listitem')
    .filter({ has: page.getByRole('heading', { name: title, exact: true }) })
const dialog = (page: Page) => page.getByRole('dialog', { name: 'Auto top-up' })

const card = { brand: 'visa', last4: '4242', exp_month: 12, exp_year: 2049, saved_at: ago(3600) }
function aTopUp(part: Partial<AutoTopUp> = {}): AutoTopUp {
  return {
    enabled: true,
    state: 'on',
    threshold: 5,
    amount: 25,
    monthly_cap: 500,
    month_charged: 50,
    min_amount: 0.5,
    off_reason: null,
    next_try_at: null,
    card,
    ...part,
  }
}

test('a card is saved, charged within what was agreed on, and removed', async ({ page, visit, seeds }) => {
  const as = await seeds.newcomer()
  const read = () => as.get<AutoTopUp>(`/wallet/auto-topup?team_id=${as.teamId}`)
  await visit('/billing', { as })
  await expect(row(page, 'Auto top-up').getByRole('button')).toHaveCount(0)
  await row(page, 'Saved card').getByRole('button', { name: 'Save a card' }).click()
  await page.getByRole('button', { name: 'Save a card that pays' }).click()

  await expect(page.getByText('The card is saved.')).toBeVisible({ timeout: 30_000 })
  await expect(page).toHaveURL(/\/billing#plan$/)
  await expect(dialog(page)).toContainText(/You agree that Homeport charges the .+ ending in \d{4}/)
  await dialog(page).getByLabel('Add (USD)').fill('0')
  await dialog(page).getByLabel('When the balance falls below (USD)').fill('7.50')
  await dialog(page).getByLabel('At most per month (USD)').fill('20')
  await page.keyboard.press('Enter')
  await expect(dialog(page).getByRole('alert')).toHaveText(
    /^Please enter an amount from \$0\.\d\d to \$10,000$/,
  )
  expect((await read()).enabled).toBe(false)
  await dialog(page).getByLabel('Add (USD)').fill('20')
  await page.keyboard.press('Enter')
  await expect(page.getByText('Auto top-up is on.')).toBeVisible()
  await expect(row(page, 'Saved card')).toContainText(/ending in \d{4}Expires \d\d\/\d{4}/)
  await expect(row(page, 'Auto top-up')).toContainText('$20.00 whenever the balance falls below $7.50')
  const balance = async () =>
    (await as.get<{ balance: number }>(`/wallet/balance?team_id=${as.teamId}`)).balance
  await expect.poll(balance, { timeout: 20_000 }).toBe(20)
  await page.reload()
  await expect(row(page, 'Auto top-up')).toContainText('$20.00 of at most $20.00 paid this month (UTC).')

  await row(page, 'Saved card').getByRole('button', { name: 'Remove the card' }).click()
  const ask = page.getByRole('alertdialog', { name: 'Remove Card' })
  await expect(ask).toContainText('Auto top-up is turned off with it.')
  await ask.getByRole('button', { name: 'Remove' }).click()
  await expect(page.getByText('The card is removed.')).toBeVisible()
  await expect(row(page, 'Saved card').getByRole('button', { name: 'Save a card' })).toBeVisible()
  expect(await read()).toMatchObject({ enabled: false })
})

test('a card is saved with a payment by who wants that', async ({ page, visit, seeds }) => {
  const as = await seeds.newcomer()
  await visit('/billing', { as })
  const keep = page.getByRole('switch', { name: 'Save this card for auto top-up' })
  await expect(row(page, 'Saved card').getByRole('button', { name: 'Save a card' })).toBeVisible()
  await expect(keep).toHaveCount(0)
  await page.getByRole('button', { name: '$25', exact: true }).click()
  await expect(keep).not.toBeChecked()
  await keep.press('Space')
  await expect(keep).toBeChecked()
  await expectAccessible(page)
  await page.getByRole('button', { name: 'Pay Now' }).click()
  await expect(page.getByText('The card is saved for automatic top-ups,')).toBeVisible()
  await page.getByRole('button', { name: 'Pay $25.00' }).click()

  await expect(page.getByText('Payment received: the credit is in your wallet.')).toBeVisible({
    timeout: 30_000,
  })
  await expect(row(page, 'Saved card')).toContainText('Visa ending in 4242')
  await expect(row(page, 'Auto top-up')).toContainText('Keeps pods running')
  const { enabled } = await as.get<AutoTopUp>(`/wallet/auto-topup?team_id=${as.teamId}`)
  expect(enabled).toBe(false)
  await page.getByRole('button', { name: '$5', exact: true }).click()
  await expect(page.getByRole('button', { name: 'Pay Now' })).toBeEnabled()
  await expect(keep).toHaveCount(0)
})

test('who wants no card saved, or may not, pays as before', async ({ page, visit, seeds }) => {
  const { card: _, ...bare } = aTopUp({ enabled: false, state: 'off' })
  await answer(page, 'get', '/wallet/auto-topup', bare)
  await refuse(page, 'post', '/wallet/credit/checkout', 503, 'Payments are not set up.')
  const requests = new Requests(page)
  const { admin, member } = await seeds.pro()
  const keep = page.getByRole('switch', { name: 'Save this card for auto top-up' })
  for (const [as, offered] of [
    [admin, 1],
    [member, 0],
  ] as const) {
    await visit('/billing', { as })
    await page.getByRole('button', { name: '$25', exact: true }).click()
    await expect(keep).toHaveCount(offered)
    await page.getByRole('button', { name: 'Pay Now' }).click()
    await expect(page.getByRole('alert').getByText('Payments are not set up.')).toBeVisible()
    expect(requests.to('post', '/wallet/credit/checkout').at(-1)?.postDataJSON()).toEqual({ amount: 25 })
  }
})

test('leaving without a card says so', async ({ page, visit, seeds }) => {
  await visit('/billing', { as: await seeds.hobby() })
  await row(page, 'Saved card').getByRole('button', { name: 'Save a card' }).click()
  await page.getByRole('button', { name: 'Cancel and go back' }).click()
  await expect(page.getByText('No card was saved.')).toBeVisible({ timeout: 30_000 })
  await expect(page).toHaveURL(/\/billing#plan$/)
})

test('how top-ups stand is said, with what to do next', async ({ page, visit, seeds }) => {
  test.slow() // a page for each state
  const as = await seeds.hobby()
  for (const [part, told] of [
    [{ state: 'charging' }, 'A payment is under way.'],
    [{ state: 'retrying', next_try_at: ago(-3600) }, 'Replace the card, or add credit by hand.'],
    [{ state: 'capped', next_try_at: ago(-86_400) }, 'a higher cap goes on at once.'],
    [{ state: 'held' }, 'A payment of the team is disputed.'],
    [
      { enabled: false, state: 'off', off_reason: 'declined' },
      'Turned off: the card was declined too often.',
    ],
    [
      { enabled: false, state: 'off', off_reason: 'authentication_required' },
      "Turned off: the bank asks the card's owner to confirm each payment.",
    ],
    [
      { enabled: false, state: 'off', off_reason: null, card: { ...card, exp_year: 2020 } },
      'Keeps pods running when the balance runs low',
    ],
  ] as const) {
    await answer(page, 'get', '/wallet/auto-topup', aTopUp(part))
    await visit('/billing', { as })
    await expect(row(page, 'Auto top-up')).toContainText(told)
  }
  await expect(row(page, 'Saved card')).toContainText('Expired 12/2020. Replace it.')
})

test('refusals say what the server said, and turning off keeps what was agreed on', async ({
  page,
  visit,
  seeds,
}) => {
  await answer(page, 'get', '/wallet/auto-topup', aTopUp())
  await visit('/billing', { as: await seeds.hobby() })
  await row(page, 'Auto top-up').getByRole('button', { name: 'Change' }).click()
  await refuse(page, 'put', '/wallet/auto-topup', 409, 'Save a card first.')
  await dialog(page).getByLabel('Add (USD)').fill('30')
  await dialog(page).getByRole('button', { name: 'Save' }).click()
  await expect(dialog(page).getByRole('alert')).toHaveText('Save a card first.')
  await answer(page, 'put', '/wallet/auto-topup', aTopUp({ enabled: false, state: 'off' }))
  const requests = new Requests(page)
  await dialog(page).getByRole('switch', { name: 'Top up automatically' }).focus()
  await page.keyboard.press('Space')
  await expect(dialog(page).getByRole('spinbutton')).toHaveCount(0)
  await dialog(page).getByRole('button', { name: 'Save' }).click()
  await expect(page.getByText('Auto top-up is off.')).toBeVisible()
  expect(requests.to('put', '/wallet/auto-topup').at(-1)?.postDataJSON()).toEqual({
    enabled: false,
    threshold: 5,
    amount: 25,
    monthly_cap: 500,
  })
  await refuse(page, 'post', '/wallet/card', 503, 'Payments are not set up.')
  await row(page, 'Saved card').getByRole('button', { name: 'Replace the card' }).click()
  await expect(page.getByRole('alert')).toContainText('Failed to open the card page')
  await expect(page.getByRole('alert')).toContainText('Payments are not set up.')
})

test('members are not asked for a card', async ({ page, visit, seeds }) => {
  const requests = new Requests(page)
  await visit('/billing', { as: (await seeds.pro()).member })
  await expect(section(page)).toContainText('Monthly spend limit')
  await expect(section(page)).not.toContainText('Auto top-up')
  await expect(section(page)).not.toContainText('Your card')
  expect(requests.to('get', '/wallet/auto-topup')).toEqual([])
})

test('who saved the card and is no admin any more sees it, and takes it away', async ({
  page,
  visit,
  seeds,
}) => {
  let saved = true
  await answer(page, 'get', '/wallet/my-card', () => (saved ? { card } : {}))
  await answer(page, 'delete', '/wallet/card', () => {
    saved = false
    return undefined
  })
  await visit('/billing#plan', { as: (await seeds.pro()).member, width: 'M' })
  const mine = row(page, 'Your card')
  await expect(mine).toContainText('Visa ending in 4242')
  await expect(mine).toContainText('You saved it when you were an admin')
  await expectNoOverflow(page)
  await expectAccessible(page)
  await mine.getByRole('button', { name: 'Remove the card' }).click()
  const ask = page.getByRole('alertdialog', { name: 'Remove Card' })
  await expect(ask).toContainText('Auto top-up is turned off with it.')
  await ask.getByRole('button', { name: 'Remove' }).click()
  await expect(page.getByText('The card is removed.')).toBeVisible()
  await expect(mine).toHaveCount(0)
})

for (const width of ['D', 'M'] as const) {
  test(`auto top-up is accessible at ${width}`, async ({ page, visit, seeds }) => {
    const retrying = aTopUp({ state: 'retrying', next_try_at: ago(-3600) })
    await answer(page, 'get', '/wallet/auto-topup', retrying)
    await visit('/billing#plan', { as: await seeds.hobby(), width })
    await expect(row(page, 'Auto top-up')).toContainText('Declined')
    await expectAccessible(page)
    await expectNoOverflow(page)
    const change = row(page, 'Auto top-up').getByRole('button', { name: 'Change' })
    await change.focus()
    await page.keyboard.press('Enter')
    await expect(dialog(page).getByLabel('When the balance falls below (USD)')).toBeFocused()
    await expectAccessible(page)
    await page.keyboard.press('Escape')
    await expect(change).toBeFocused()
  })
}
