// The data rules of section 4 of the specification that no single page owns.
import { answer, Requests, refuse } from './answers'
import { aVolume, id } from './bodies'
import { expect, test } from './fixture'
import { follow, open, Traffic } from './routes'

test('a failed refresh keeps what was there', async ({ page, visit, seeds }) => {
  await answer(page, 'get', '/volumes', [aVolume({ id: id('70'), name: 'datasets' })])
  await page.clock.install()
  const requests = new Requests(page)
  await visit('/storage', { as: await seeds.hobby1() })
  await expect(page.getByText('datasets').first()).toBeVisible()
  const read = () => requests.to('get', '/volumes').length
  expect(read()).toBe(1)

  await refuse(page, 'get', '/volumes', 500)
  await follow(page, '/pods')
  await page.clock.fastForward(5 * 60_000 + 1000)
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
