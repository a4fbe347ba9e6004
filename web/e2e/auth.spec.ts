// Section D of the checks: /auth.
import { randomUUID } from 'node:crypto'
import type { Page, Route } from '@playwright/test'
import { linkOf, newestLetter } from './client'
import { expect, type Homeport, test } from './fixture'
import { expectAccessible, expectNoOverflow } from './looks'

const field = (page: Page) => page.getByRole('textbox', { name: 'Email', exact: true })
const submit = (page: Page) => page.getByRole('button', { name: 'Login using Magic Link', exact: true })
const confirmation = (page: Page) => page.getByText('Check your email for a login link', { exact: true })
const someone = (name: string) => `${name}-${randomUUID()}@example.com`

/** Answers for the authentication service; returns the requests that came. */
async function mails(page: Page, act: (route: Route) => Promise<void>): Promise<URL[]> {
  const seen: URL[] = []
  await page.route(/\/auth\/v1\/otp/, (route) => {
    seen.push(new URL(route.request().url()))
    return act(route)
  })
  return seen
}
const accept = (route: Route) => route.fulfill({ json: {} })

async function askFor(page: Page, homeport: Homeport, email: string): Promise<string> {
  await field(page).fill(email)
  await submit(page).click()
  await expect(confirmation(page)).toBeVisible()
  return linkOf(await newestLetter(homeport, email))
}

test('66 the page has one field and one button, and no other way in', async ({ page, visit }) => {
  for (const width of ['D', 'M'] as const) {
    await visit('/auth', { width })
    const main = page.getByRole('main')
    await expect(field(page)).toBeVisible()
    await expect(submit(page)).toBeVisible()
    await expect(main.locator('form')).toHaveCount(1)
    await expect(main.locator('input')).toHaveCount(1)
    await expect(main.getByRole('button')).toHaveCount(1)
    await expect(page.locator('input[type=password]')).toHaveCount(0)
    await expect(main.getByText(/password\?|forgot|sign up|register|google|github/i)).toHaveCount(0)
    await expect(main.getByRole('link')).toHaveCount(1) // the support address
    await expectNoOverflow(page)
    await expectAccessible(page)
  }
})

test('67 the button tells that the link is being sent, then that it is', async ({
  page,
  visit,
  homeport,
}) => {
  let release = () => {}
  const released = new Promise<void>((done) => {
    release = done
  })
  await mails(page, async (route) => {
    await released
    await route.continue()
  })
  const email = someone('sent')
  await visit('/auth')
  await field(page).fill(email)
  await submit(page).click()
  await expect(page.getByRole('button', { name: 'Sending Magic Link...', exact: true })).toBeDisabled()
  await expect(confirmation(page)).toBeHidden()
  release()
  await expect(confirmation(page)).toBeVisible()
  await expect(submit(page)).toBeEnabled()
  expect(linkOf(await newestLetter(homeport, email))).toContain(homeport.url)
})

test('68 the request carries the origin of the page as its target', async ({ page, visit, homeport }) => {
  const seen = await mails(page, accept)
  await visit('/auth?redirect=/storage')
  await field(page).fill('ada@example.com')
  await submit(page).click()
  await expect(confirmation(page)).toBeVisible()
  expect(seen.map((url) => url.searchParams.get('redirect_to'))).toEqual([homeport.url])
})

test('69 an empty address is refused without a request', async ({ page, visit }) => {
  const seen = await mails(page, accept)
  await visit('/auth')
  for (const text of ['', '   ']) {
    await field(page).fill(text)
    await submit(page).click()
    await expect(page.getByRole('alert')).toHaveText('Email is required')
  }
  expect(seen).toEqual([])
  await field(page).fill('ada@example.com')
  await submit(page).click()
  await expect(confirmation(page)).toBeVisible()
  await expect(page.getByRole('alert')).toHaveCount(0)
})

test('70 a refusal of the service is shown as it is', async ({ page, visit }) => {
  const msg = 'For security purposes, you can only request this after 32 seconds.'
  await mails(page, (route) =>
    route.fulfill({ status: 429, json: { code: 429, error_code: 'over_email_send_rate_limit', msg } }),
  )
  await visit('/auth')
  await field(page).fill('ada@example.com')
  await submit(page).click()
  await expect(page.getByRole('alert')).toHaveText(msg)
  await expect(confirmation(page)).toBeHidden()
  await expect(submit(page)).toBeEnabled()
})

test('70 a second request within a minute is refused by the server itself', async ({
  page,
  visit,
  homeport,
}) => {
  await visit('/auth')
  await askFor(page, homeport, someone('twice'))
  await submit(page).click()
  await expect(page.getByRole('alert')).toHaveText(
    /^For security purposes, you can only request this after \d+ seconds\.$/,
  )
  await expect(confirmation(page)).toBeHidden()
})

test('71 the footer names the support address', async ({ page, visit, request }) => {
  const { support_email } = await (await request.get('/config.json')).json()
  await visit('/auth')
  await expect(page.getByText(`Having issues? Reach out to ${support_email}`, { exact: true })).toBeVisible()
  await expect(page.getByRole('link', { name: support_email, exact: true })).toHaveAttribute(
    'href',
    `mailto:${support_email}`,
  )
})

test('72 who is signed in is taken on, without a way back', async ({ page, visit, seeds }) => {
  const { admin } = await seeds.pro()
  await visit('/auth', { as: admin })
  await expect(page).toHaveURL(/\/pods$/)
  await expect(page.getByRole('heading', { level: 1, name: 'Pods' })).toBeVisible()
  await page.goBack()
  await expect(page).toHaveURL(/robots\.txt$/) // where the session was put into the browser
  await visit('/auth?redirect=/billing', { as: admin })
  await expect(page).toHaveURL(/\/billing$/)
  await expect(page.getByRole('heading', { level: 1, name: 'Billing & Wallet' })).toBeVisible()
})

test('73a the sign-in page is no target of its own', async ({ page, visit, seeds }) => {
  await visit('/auth?redirect=/auth', { as: (await seeds.pro()).admin })
  await expect(page).toHaveURL(/\/pods$/)
})

test('73 other origins are no targets', async ({ page, visit, seeds, homeport }) => {
  const { admin } = await seeds.pro()
  for (const [target, path] of [
    ['https://evil.test', '/pods'],
    ['//evil.test', '/pods'],
    ['/\\evil.test', '/pods'],
    ['/%5Cevil.test/..//evil.test', '/pods'],
  ] as const) {
    await visit(`/auth?redirect=${encodeURIComponent(target)}`, { as: admin })
    await expect(page, target).toHaveURL(homeport.url + path)
    await expect(page.getByRole('heading', { level: 1, name: 'Pods' })).toBeVisible()
  }
})

test('74 the mailed link leads on to where one wanted to go', async ({ page, visit, homeport }) => {
  await visit('/auth?redirect=/storage')
  await page.goto(await askFor(page, homeport, someone('redirect')))
  await expect(page).toHaveURL(/\/storage$/)
  await expect(page.getByRole('heading', { level: 1, name: 'Storage' })).toBeVisible()
})

// Of one browser's own: a browser may ask once a minute.
test('74 without a wish the mailed link leads to /create', async ({ page, visit, homeport }) => {
  await visit('/auth')
  await page.goto(await askFor(page, homeport, someone('plain')))
  await expect(page).toHaveURL(/\/create$/)
  await expect(page.getByRole('heading', { level: 1, name: 'Create New Instance' })).toBeVisible()
})

test('74 the tab that asked for the link follows the one that opened it', async ({
  page,
  visit,
  homeport,
  context,
}) => {
  await visit('/auth?redirect=/ssh-keys')
  const link = await askFor(page, homeport, someone('tabs'))
  const other = await context.newPage()
  await other.goto(link)
  await expect(other).toHaveURL(/\/ssh-keys$/)
  await expect(page).toHaveURL(/\/ssh-keys$/)
  await expect(page.getByRole('heading', { level: 1, name: 'SSH Keys' })).toBeVisible()
})

test('75 the enter key submits', async ({ page, visit }) => {
  const seen = await mails(page, accept)
  await visit('/auth')
  await field(page).fill('ada@example.com')
  await field(page).press('Enter')
  await expect(confirmation(page)).toBeVisible()
  expect(seen).toHaveLength(1)
})

test('the mailed link is followed from the mailbox of this machine', async ({ page, visit }) => {
  const email = someone('mailbox')
  await visit('/auth')
  await field(page).fill(email)
  await field(page).press('Enter')
  await expect(confirmation(page)).toBeVisible()
  await page.goto('/dev/mailbox')
  await page.getByRole('article').filter({ hasText: email }).getByRole('link').click()
  await expect(page).toHaveURL(/\/create$/)
})
