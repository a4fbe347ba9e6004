// Section K of the checks: /create-team.
import type { Page } from '@playwright/test'
import { answer, hold, Requests, refuse } from './answers'
import { expect, test } from './fixture'
import { expectAccessible, expectNoOverflow } from './looks'

const dialog = (page: Page) => page.getByRole('dialog', { name: 'Team Details' })
const teamName = (page: Page) => dialog(page).getByLabel('Team Name')
const members = (page: Page) => dialog(page).getByLabel('Number of Team Members')
const submit = (page: Page) => dialog(page).getByRole('button', { name: /^Upgrade to Pro for / })
const openDialog = async (page: Page) => {
  await page.getByRole('main').getByRole('button', { name: 'Upgrade to Pro', exact: true }).click()
  await expect(dialog(page)).toBeVisible()
}

test('179 heading and note', async ({ page, visit }) => {
  await visit('/create-team')
  await expect(page.getByRole('heading', { level: 1, name: 'Create a Team' })).toBeVisible()
  await expect(page.getByText('Creating a team requires a pro subscription.')).toBeVisible()
})

test('180 the Pro card has its price and its perks', async ({ page, visit }) => {
  await visit('/create-team')
  const card = page.getByRole('region', { name: 'Pro', exact: true })
  await expect(card.getByText('$100/month', { exact: true })).toBeVisible()
  await expect(card.getByText('+ $100/month per additional member')).toBeVisible()
  await expect(card.getByRole('listitem')).toHaveText([
    'Unlimited storage volumes',
    '16% cheaper GPU prices',
    'Flexible team size',
    'Spend limit $10,000/month',
    'Everything in Hobby',
  ])
})

test('181 the Enterprise card leads to sales', async ({ page, visit, homeport }) => {
  const config: { sales_email: string } = await (await fetch(`${homeport.url}/config.json`)).json()
  await visit('/create-team')
  const card = page.getByRole('region', { name: 'Enterprise', exact: true })
  await expect(card.getByText('Custom pricing')).toBeVisible()
  await expect(card.getByRole('listitem')).toHaveText([
    'Direct support channel',
    'Multi-node support',
    'Dedicated VMs and baremetal',
    'Multi-node clusters',
    'Everything in Pro',
  ])
  await expect(card.getByRole('link', { name: 'Talk to Sales' })).toHaveAttribute(
    'href',
    `mailto:${config.sales_email}`,
  )
  expect(config.sales_email).toContain('@')
})

test('182 Upgrade to Pro opens the dialog, for a visitor /auth', async ({ page, visit, seeds }) => {
  await visit('/create-team')
  await page.getByRole('button', { name: 'Upgrade to Pro', exact: true }).click()
  await expect(page).toHaveURL(/\/auth\?redirect=/)
  expect(new URL(page.url()).searchParams.get('redirect')).toBe('/create-team')
  for (const as of [await seeds.hobby(), (await seeds.pro()).admin]) {
    await visit('/create-team', { as })
    await openDialog(page)
  }
})

test('183 the dialog asks for name, members and description, and can be left', async ({
  page,
  visit,
  seeds,
}) => {
  await visit('/create-team', { as: await seeds.hobby() })
  await openDialog(page)
  await expect(teamName(page)).toBeFocused()
  await expect(teamName(page)).toHaveAttribute('required')
  await expect(members(page)).toHaveValue('1')
  const description = dialog(page).getByRole('textbox', { name: /^Description/ })
  expect(await description.evaluate((element) => element.tagName)).toBe('TEXTAREA')
  await expect(description).not.toHaveAttribute('required')
  await expect(dialog(page).getByText('Monthly Cost Breakdown')).toBeVisible()
  for (let stop = 0; stop < 8; stop += 1) {
    await page.keyboard.press('Tab')
    expect(await dialog(page).evaluate((box) => box.contains(document.activeElement))).toBe(true)
  }
  await page.keyboard.press('Escape')
  await expect(dialog(page)).toBeHidden()
  await expect(page.getByRole('main').getByRole('button', { name: 'Upgrade to Pro' })).toBeFocused()
  await openDialog(page)
  await dialog(page).getByRole('button', { name: 'Close' }).click()
  await expect(dialog(page)).toBeHidden()
})

test('184 the price follows the number of members', async ({ page, visit, seeds }) => {
  await visit('/create-team', { as: await seeds.hobby() })
  await openDialog(page)
  const line = (n: number) => dialog(page).getByRole('definition').nth(n)
  await expect(line(0)).toHaveText('$100')
  await expect(line(1)).toHaveText('$0')
  await expect(line(2)).toHaveText('$100')
  await expect(submit(page)).toHaveText('Upgrade to Pro for $100/mo')
  await members(page).fill('3')
  await expect(dialog(page).getByRole('term')).toHaveText([
    'Base (1 member)',
    '2 additional members',
    'Total',
  ])
  await expect(line(0)).toHaveText('$100')
  await expect(line(1)).toHaveText('$200')
  await expect(line(2)).toHaveText('$300')
  await expect(submit(page)).toHaveText('Upgrade to Pro for $300/mo')
  await members(page).fill('100')
  await expect(submit(page)).toHaveText('Upgrade to Pro for $10,000/mo')
})

test('185 a wrong number of members is named and blocks', async ({ page, visit, seeds }) => {
  await visit('/create-team', { as: await seeds.hobby() })
  await openDialog(page)
  await teamName(page).fill('Deep Sea Lab')
  for (const [text, problem] of [
    ['', 'Number of members is required'],
    ['x', 'Please enter a valid number'],
    ['1.5', 'Please enter a valid number'],
    ['0', 'At least 1 member is required'],
    ['101', 'Maximum 100 members allowed'],
  ] as const) {
    await members(page).fill(text)
    await expect(dialog(page).getByText(problem, { exact: true })).toBeVisible()
    await expect(members(page)).toHaveAccessibleDescription(problem)
    await expect(submit(page)).toBeDisabled()
  }
  await members(page).fill('2')
  await expect(dialog(page).getByRole('alert')).toHaveCount(0)
  await expect(submit(page)).toBeEnabled()
})

test('186 without a team name nothing is sent', async ({ page, visit, seeds }) => {
  const requests = new Requests(page)
  await visit('/create-team', { as: await seeds.hobby() })
  await openDialog(page)
  for (const name of ['', '   ']) {
    await teamName(page).fill(name)
    await submit(page).click()
    await expect(dialog(page).getByText('Team name is required')).toBeVisible()
    await expect(teamName(page)).toBeFocused()
  }
  await members(page).press('Enter')
  await expect(submit(page)).toBeEnabled()
  expect(requests.to('post', '/teams/checkout')).toHaveLength(0)
})

test('187 the note says when the subscription is billed', async ({ page, visit, seeds }) => {
  await visit('/create-team', { as: await seeds.hobby() })
  await openDialog(page)
  await expect(
    dialog(page).getByText('Your subscription will be billed monthly on the same date each month.'),
  ).toBeVisible()
})

test('188 submit asks for a checkout with credentials and goes there', async ({
  page,
  visit,
  seeds,
  homeport,
}) => {
  // Whether cookies go along is in no request that can be seen from outside on one origin.
  await page.addInitScript(() => {
    const real = window.fetch
    window.fetch = (input, init) => {
      if (String(input).endsWith('/teams/checkout')) sessionStorage.setItem('mode', init?.credentials ?? '')
      return real(input, init)
    }
  })
  const requests = new Requests(page)
  await answer(page, 'post', '/teams/checkout', { checkout_url: `${homeport.url}/robots.txt?paying` })
  const release = await hold(page, 'post', '/teams/checkout')
  await visit('/create-team', { as: await seeds.hobby() })
  await openDialog(page)
  await teamName(page).fill('  Deep Sea Lab ')
  await members(page).fill('3')
  await dialog(page)
    .getByRole('textbox', { name: /^Description/ })
    .fill('Trench models')
  await submit(page).click()
  const busy = dialog(page).getByRole('button', { name: 'Creating Team...' })
  await expect(busy).toBeDisabled()
  await teamName(page).press('Enter')
  release()
  await expect(page).toHaveURL(/robots\.txt\?paying$/)
  const sent = requests.to('post', '/teams/checkout')
  expect(sent).toHaveLength(1)
  expect(sent[0]?.postDataJSON()).toEqual({
    name: 'Deep Sea Lab',
    description: 'Trench models',
    member_count: 3,
  })
  expect(await page.evaluate(() => sessionStorage.getItem('mode'))).toBe('include')
})

test('189 a refused checkout is shown in red and can be tried again', async ({ page, visit, seeds }) => {
  await visit('/create-team', { as: await seeds.hobby() })
  await openDialog(page)
  await teamName(page).fill('Deep Sea Lab')
  const problem = dialog(page).getByRole('alert')
  await refuse(page, 'post', '/teams/checkout', 503, 'Payments are not set up.')
  await submit(page).click()
  await expect(problem).toHaveText('Payments are not set up.')
  await expect(problem).toHaveCSS('color', 'oklch(0.745 0.15 22)')
  await expect(submit(page)).toBeEnabled()
  await refuse(page, 'post', '/teams/checkout', 500)
  await submit(page).click()
  await expect(problem).toHaveText('Failed to create team checkout session')
  await expect(submit(page)).toBeEnabled()
  await page.route('**/api/teams/checkout', (route) => route.abort())
  await submit(page).click()
  await expect(problem).toHaveText('Failed to create team checkout session')
  await expect(submit(page)).toBeEnabled()
})

test('the dialog is accessible at both widths and fits', async ({ page, visit, seeds }) => {
  for (const width of ['D', 'M'] as const) {
    await visit('/create-team', { as: await seeds.hobby(), width })
    await openDialog(page)
    await members(page).fill('x')
    await expectAccessible(page)
    await expectNoOverflow(page)
    await submit(page).scrollIntoViewIfNeeded()
    await expect(submit(page)).toBeInViewport({ ratio: 1 })
  }
})
