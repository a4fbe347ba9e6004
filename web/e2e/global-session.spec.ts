// Section A of the checks: the session, and what is asked before and after it.
import { Requests } from './answers'
import type { Client, Volume } from './client'
import { expect, test } from './fixture'
import { mark, Watch } from './looks'
import { follow, open, openRoutes, readOnly, Traffic } from './routes'

/** The id of somebody's one volume, which only they see: visitors see an example of the same name. */
async function volumeOf(client: Client): Promise<string> {
  const [volume] = await client.get<Volume[]>(`/volumes?team_id=${client.teamId}`)
  if (volume === undefined) throw new Error('no volume')
  return volume.id
}

test('22 every call of somebody signed in carries the token; a visitor asks for offers without one', async ({
  page,
  visit,
  seeds,
}) => {
  const requests = new Requests(page)
  const traffic = new Traffic(page)
  await open(page, traffic, '/create')
  await expect.poll(() => requests.to('get', '/resources').length).toBe(1)
  const [resources, ...others] = requests.all.splice(0)
  expect(others).toEqual([])
  expect(new URL(resources?.url() ?? '').pathname).toBe('/api/resources')
  expect(new URL(resources?.url() ?? '').search).toBe('')
  expect((await resources?.allHeaders())?.authorization).toBeUndefined()

  await visit('/pods', { as: await seeds.hobby1() })
  for (const path of openRoutes) await follow(page, path)
  await traffic.quiet()
  expect(requests.to('get', '/resources')).toHaveLength(1)
  expect(new URL(requests.to('get', '/resources')[0]?.url() ?? '').search).toMatch(/^\?team_id=/)
  expect(requests.all.length).toBeGreaterThan(8)
  for (const request of requests.all)
    expect((await request.allHeaders()).authorization, request.url()).toMatch(/^Bearer \S+\.\S+\.\S+$/)
})

test('23a a /user/info that fails is logged only, and the page fills once it answers', async ({
  page,
  visit,
  seeds,
  homeport,
}) => {
  const client = await seeds.hobby1()
  const volume = await volumeOf(client)
  const watch = new Watch(page, homeport.url)
  const requests = new Requests(page)
  let down = true
  await page.route('**/api/user/info', (route) =>
    down ? route.fulfill({ status: 500, json: { status: 500, detail: 'x' } }) : route.fallback(),
  )
  await page.clock.install()
  await visit('/storage', { as: client })
  await expect(page.getByRole('heading', { level: 1, name: 'Storage' })).toBeVisible()
  await page.clock.runFor(2000)
  await expect.poll(() => watch.errors.filter((text) => text.includes('user-info')).length).toBe(1)
  await expect(page.getByRole('alert')).toHaveCount(0)
  await expect(page.getByRole('status')).toHaveCount(0)
  await expect(page).toHaveURL(/\/storage$/)
  await expect(page.getByRole('button', { name: 'Sign Out' })).toBeVisible()
  expect(await page.evaluate(() => localStorage.getItem('homeport-auth'))).not.toBeNull()
  expect(requests.all.filter((request) => !request.url().endsWith('/user/info'))).toEqual([])
  down = false
  await page.clock.runFor(6000)
  await expect(page.getByText(volume)).toBeVisible()
})

test('23 nothing but /user/info is asked for until it has answered', async ({ page, visit, seeds }) => {
  const client = await seeds.hobby1()
  const volume = await volumeOf(client)
  const requests = new Requests(page)
  let go = () => {}
  const held = new Promise<void>((done) => {
    go = done
  })
  await page.route('**/api/user/info', async (route) => {
    await held
    await route.fallback()
  })
  await page.clock.install()
  await visit('/storage', { as: client })
  await expect(page.getByRole('heading', { level: 1, name: 'Storage' })).toBeVisible()
  await page.clock.runFor(10_000)
  for (const [path, name] of [
    ['/pods', 'Pods'],
    ['/billing', 'Billing & Wallet'],
    ['/create', 'Create New Instance'],
  ] as const) {
    await follow(page, path)
    await expect(page.getByRole('heading', { level: 1, name })).toBeVisible()
    await page.clock.runFor(31_000)
  }
  expect(new Set(requests.all.map((request) => new URL(request.url()).pathname))).toEqual(
    new Set(['/api/user/info']),
  )
  expect(requests.to('get', '/user/info')).toHaveLength(1)
  go()
  await follow(page, '/storage')
  await expect(page.getByText(volume)).toBeVisible()
})

test('24 a refusal that a new token does not cure ends the session and clears what was kept', async ({
  page,
  visit,
  seeds,
}) => {
  const client = await seeds.hobby1()
  const volume = await volumeOf(client)
  const traffic = new Traffic(page)
  for (const renewed of [false, true]) {
    await visit('/robots.txt', { as: client })
    // Whatever the page still asks for would be refused, too, and end the session before the click.
    await open(page, traffic, '/storage')
    await expect(page.getByText(volume)).toBeVisible()
    const marked = await mark(page)
    const session = await page.evaluate(() => {
      localStorage.setItem('homeport-other', '1')
      localStorage.setItem('elsewhere', '1')
      return JSON.parse(localStorage.getItem('homeport-auth') ?? '{}')
    })
    // The service's own token is left alone: others go on with this person.
    await page.route('**/auth/v1/token**', (route) =>
      renewed
        ? route.fulfill({ json: session })
        : route.fulfill({
            status: 400,
            json: { code: 'refresh_token_not_found', msg: 'Invalid Refresh Token' },
          }),
    )
    const requests = new Requests(page)
    await page.route('**/api/**', (route) =>
      route.fulfill({ status: 401, json: { status: 401, detail: 'no' } }),
    )
    await page.getByRole('button', { name: 'Refresh wallet data' }).click()
    await expect(page.getByText(readOnly)).toBeVisible()
    await expect(page.getByRole('button', { name: 'Sign Out' })).toHaveCount(0)
    await expect(page.getByText(volume)).toHaveCount(0)
    await expect(page).toHaveURL(/\/storage$/)
    const kept = await page.evaluate(() => Object.keys(localStorage))
    expect(kept.filter((key) => key.startsWith('homeport-'))).toEqual([])
    expect(kept).toContain('elsewhere')
    expect(requests.to('get', '/wallet/balance')).toHaveLength(renewed ? 2 : 1)
    await expect(marked).toBeAttached()
    await page.unrouteAll()
  }
})

test('25a news of the session from elsewhere neither reload the page nor ask for anything again', async ({
  page,
  visit,
  seeds,
}) => {
  const client = await seeds.hobby1()
  const volume = await volumeOf(client)
  const traffic = new Traffic(page)
  const requests = new Requests(page)
  await visit('/robots.txt', { as: client })
  await open(page, traffic, '/storage')
  await expect(page.getByText(volume)).toBeVisible()
  const marked = await mark(page)
  const before = requests.all.length
  await page.evaluate(() => {
    const session = JSON.parse(localStorage.getItem('homeport-auth') ?? '{}')
    const channel = new BroadcastChannel('homeport-auth')
    const renamed = { ...session, user: { ...session.user, email: 'renamed@example.com' } }
    for (const event of ['SIGNED_IN', 'SIGNED_IN', 'TOKEN_REFRESHED', 'PASSWORD_RECOVERY', 'SIGNED_IN'])
      channel.postMessage({ event, session })
    channel.postMessage({ event: 'USER_UPDATED', session: renamed })
    channel.close()
  })
  await traffic.quiet()
  await expect(page.getByText(volume)).toBeVisible()
  expect(requests.all.length).toBe(before)
  // The last news ends the session: those before it have been heard by then.
  await page.evaluate(() => {
    const channel = new BroadcastChannel('homeport-auth')
    channel.postMessage({ event: 'SIGNED_OUT', session: null })
    channel.close()
  })
  await expect(page.getByText(readOnly)).toBeVisible()
  expect(requests.all.length).toBe(before)
  await expect(page).toHaveURL(/\/storage$/)
  await expect(marked).toBeAttached()
})

test('25 signing out in another tab signs this one out without a reload', async ({ page, visit, seeds }) => {
  await visit('/pods', { as: await seeds.newcomer() })
  await expect(page.getByRole('button', { name: 'Sign Out' })).toBeVisible()
  const marked = await mark(page)
  const other = await page.context().newPage()
  await other.goto('/billing')
  await other.getByRole('button', { name: 'Sign Out' }).click()
  await expect(page.getByText(readOnly)).toBeVisible()
  await expect(page.getByRole('button', { name: 'Sign Out' })).toHaveCount(0)
  await expect(page.getByRole('button', { name: 'Sign in to refresh wallet data' })).toBeDisabled()
  await expect(marked).toBeAttached()
  await other.close()
})
