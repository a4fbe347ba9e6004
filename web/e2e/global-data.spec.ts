// The data rules of section 4 of the specification that no single page owns.
import { answer, hold, Requests, refuse } from './answers'
import { aVolume, id } from './bodies'
import { expect, test } from './fixture'
import { follow, open, Traffic } from './routes'

const lists = ['/api/pods', '/api/volumes', '/api/ssh-keys', '/api/resources'] as const

for (const [path, own] of [
  ['/pods', ['/api/pods']],
  ['/storage', ['/api/volumes']],
  ['/create', ['/api/resources', '/api/ssh-keys', '/api/volumes']],
] as const) {
  test(`${path} asks for its own lists first, for the others 100 ms later`, async ({
    page,
    visit,
    seeds,
  }) => {
    const requests = new Requests(page)
    const asked = () =>
      requests.all
        .map((request) => new URL(request.url()).pathname)
        .filter((each) => lists.some((list) => list === each))
    const go = await hold(page, 'get', '/user/info')
    await page.clock.install()
    await visit(path, { as: await seeds.hobby1() })
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
    await page.clock.pauseAt((await page.evaluate(() => Date.now())) + 1000)
    go()
    // The clock goes on by little steps, and no further once the page has asked.
    const step = async () => {
      if (asked().length < own.length) await page.clock.runFor(2)
      return asked().sort()
    }
    await expect.poll(step, { intervals: [50] }).toEqual([...own])
    await page.clock.runFor(40)
    expect(asked().sort()).toEqual([...own])
    await page.clock.runFor(70)
    await expect.poll(() => asked().length).toBe(lists.length)
  })
}

test('a list is fresh for five minutes, and a failed refresh keeps what was there', async ({
  page,
  visit,
  seeds,
}) => {
  await answer(page, 'get', '/volumes', [aVolume({ id: id('70'), name: 'datasets' })])
  await page.clock.install()
  const traffic = new Traffic(page)
  const requests = new Requests(page)
  await visit('/storage', { as: await seeds.hobby1() })
  await expect(page.getByText('datasets').first()).toBeVisible()
  const read = () => requests.to('get', '/volumes').length
  expect(read()).toBe(1)

  await follow(page, '/pods')
  await page.clock.runFor(4 * 60_000)
  await follow(page, '/storage')
  await expect(page.getByText('datasets').first()).toBeVisible()
  await traffic.quiet()
  expect(read()).toBe(1)

  await refuse(page, 'get', '/volumes', 500)
  await follow(page, '/pods')
  await page.clock.runFor(61_000)
  await follow(page, '/storage')
  await page.clock.runFor(1000) // the one retry
  await expect(page.getByText('Failed to fetch volumes')).toBeVisible()
  await expect(page.getByText('datasets').first()).toBeVisible()
  expect(read()).toBe(3)
})

test('another team on stage shows none of the lists of the one before', async ({ page, visit, seeds }) => {
  const { admin, id: team } = await seeds.pro()
  const traffic = new Traffic(page)
  await visit('/robots.txt', { as: admin, team })
  await open(page, traffic, '/storage')
  await expect(page.getByText('checkpoints').first()).toBeVisible()
  const requests = new Requests(page)
  await page.goto('/robots.txt')
  await page.evaluate(() => {
    // biome-ignore lint/suspicious/noDocumentCookie: as the page itself writes it
    document.cookie = 'homeport-team=nobody-s; Path=/'
  })
  await open(page, traffic, '/storage')
  await expect(page.getByRole('heading', { level: 1, name: 'Storage' })).toBeVisible()
  await expect(page.getByText('checkpoints')).toHaveCount(0)
  const teams = requests.to('get', '/volumes').map((r) => new URL(r.url()).searchParams.get('team_id'))
  expect(teams.length).toBeGreaterThan(0)
  expect(teams).not.toContain(team)
})
