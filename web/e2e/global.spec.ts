// Section A of the checks: where each address leads, and to whom.
import { expect, test } from './fixture'
import { openRoutes } from './routes'

const sidebar = { name: 'Main' } as const
const topBar = { name: 'Open menu' } as const

test('1 a visitor sees the landing page at /, without the shell', async ({ page, visit }) => {
  for (const width of ['D', 'M'] as const) {
    await visit('/', { width })
    await expect(
      page.getByRole('heading', { level: 1, name: 'Every GPU cloud. One home port.' }),
    ).toBeVisible()
    await expect(page).toHaveURL(/:\d+\/$/)
    await expect(page.getByRole('navigation', sidebar)).toHaveCount(0)
    await expect(page.getByRole('button', topBar)).toHaveCount(0)
  }
})

test('2 somebody signed in goes from / to /create, and Back does not return to /', async ({
  page,
  visit,
  seeds,
}) => {
  await visit('/home', { as: await seeds.hobby1() })
  await page.goto('/')
  await expect(page).toHaveURL(/\/create$/)
  await expect(page.getByRole('heading', { level: 1, name: 'Create New Instance' })).toBeVisible()
  await page.goBack()
  await expect(page).toHaveURL(/\/home$/)
})

test('3 /home shows the landing page to everybody', async ({ page, visit, seeds }) => {
  for (const as of [undefined, await seeds.hobby1()]) {
    await visit('/home', as ? { as } : {})
    await expect(
      page.getByRole('heading', { level: 1, name: 'Every GPU cloud. One home port.' }),
    ).toBeVisible()
    await expect(page.getByRole('link', { name: 'Go to Dashboard' }).first()).toBeVisible()
    await expect(page).toHaveURL(/\/home$/)
    await expect(page.getByRole('navigation', sidebar)).toHaveCount(0)
    await expect(page.getByRole('button', topBar)).toHaveCount(0)
  }
})

test('4 an unknown path leads to /, and from there to /create when signed in', async ({
  page,
  visit,
  seeds,
}) => {
  await visit('/no-such-page/x')
  await expect(page).toHaveURL(/:\d+\/$/)
  await expect(page.getByRole('heading', { level: 1, name: 'Every GPU cloud. One home port.' })).toBeVisible()
  await visit('/no-such-page/x', { as: await seeds.hobby1() })
  await expect(page).toHaveURL(/\/create$/)
  await expect(page.getByRole('heading', { level: 1, name: 'Create New Instance' })).toBeVisible()
})

test('5 /custom-infrastructure leads to /multi-node-clusters', async ({ page, visit }) => {
  await visit('/home')
  await page.goto('/custom-infrastructure')
  await expect(page).toHaveURL(/\/multi-node-clusters$/)
  await expect(page.getByRole('heading', { level: 1, name: 'Multi Node Clusters' })).toBeVisible()
  await page.goBack()
  await expect(page).toHaveURL(/\/home$/)
})

test('6 nothing is to be seen until it is known whether the stored session holds', async ({
  page,
  visit,
  seeds,
}) => {
  await visit('/robots.txt', { as: await seeds.hobby() })
  let go = () => {}
  const held = new Promise<void>((done) => {
    go = done
  })
  await page.route('**/auth/v1/token**', async (route) => {
    await held
    await route.continue()
  })
  for (const path of ['/', '/pods']) {
    await page.evaluate(() => {
      const session = JSON.parse(localStorage.getItem('homeport-auth') ?? '{}')
      localStorage.setItem('homeport-auth', JSON.stringify({ ...session, expires_at: 1 }))
    })
    const asked = page.waitForRequest('**/auth/v1/token**')
    await page.goto(path)
    await asked
    // biome-ignore lint/performance/useDomNodeTextContent: innerText leaves out what cannot be seen, as the prerendered page must not be.
    expect(await page.evaluate(() => document.body.innerText.trim())).toBe('')
    if (path === '/') continue
    go()
    await expect(page.getByRole('heading', { level: 1, name: 'Pods' })).toBeVisible()
    await expect(page.getByRole('button', { name: 'Sign Out' })).toBeVisible()
  }
})

test('7 somebody without any team is led to /create-team from every page', async ({ page, visit, seeds }) => {
  const client = await seeds.hobby()
  await page.route('**/api/user/info', (route) =>
    route.fulfill({
      json: { user_id: client.userId, email: client.email, personal_team: null, teams: [] },
    }),
  )
  await visit('/robots.txt', { as: client })
  for (const path of ['/auth', ...openRoutes]) {
    await page.goto(path)
    await expect(page, path).toHaveURL(/\/create-team$/)
    await expect(page.getByRole('heading', { level: 1, name: 'Create a Team' })).toBeVisible()
  }
})

test('8 a visitor can open every page of the shell', async ({ page, visit }) => {
  for (const path of openRoutes) {
    await visit(path)
    await expect(page.getByRole('navigation', sidebar)).toBeVisible()
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
    expect(new URL(page.url()).pathname).toBe(path)
  }
})
