// Section C of the checks: the team switcher of the shell.
import type { Page } from '@playwright/test'
import { answer, Requests } from './answers'
import { id } from './bodies'
import type { Client } from './client'
import { expect, test } from './fixture'
import { mark } from './looks'

const switcher = (page: Page) => page.getByRole('button', { name: /^Team / })
const teams = (page: Page) => page.getByRole('menu', { name: 'Teams' })
const day = 24 * 60 * 60

interface Info {
  personal_team: { id: string; name: string }
}
const personalOf = async (person: Client) => (await person.get<Info>('/user/info')).personal_team

async function cookie(page: Page) {
  return (await page.context().cookies()).find(({ name }) => name === 'homeport-team')
}

test('45 the switcher lists the teams with their plans, the way to a new one and who is signed in', async ({
  page,
  visit,
  seeds,
}) => {
  const { admin, name } = await seeds.pro()
  const personal = await personalOf(admin)
  await visit('/ssh-keys', { as: admin })
  await expect(switcher(page)).toHaveAccessibleName(`Team ${name} Pro`)
  await switcher(page).click()
  const items = teams(page).getByRole('menuitemradio')
  await expect(items).toHaveCount(2)
  await expect(items.filter({ hasText: personal.name })).toHaveAccessibleName(`${personal.name} Hobby`)
  await expect(items.filter({ hasText: name })).toHaveAccessibleName(`${name} Pro`)
  await expect(items.filter({ hasText: name })).toHaveAttribute('aria-checked', 'true')
  await expect(items.filter({ hasText: name })).toBeFocused()
  await expect(teams(page).getByRole('menuitem', { name: 'Create new team', exact: true })).toBeVisible()
  await expect(page.getByText(`Signed in as ${admin.email}`, { exact: true })).toBeVisible()
  await page.keyboard.press('Escape')
  await expect(teams(page)).toHaveCount(0)
  await expect(switcher(page)).toBeFocused()
})

test('46 Create new team leads to its page', async ({ page, visit, seeds }) => {
  await visit('/ssh-keys', { as: (await seeds.pro()).admin })
  await switcher(page).click()
  await teams(page).getByRole('menuitem', { name: 'Create new team' }).click()
  await expect(page).toHaveURL(/\/create-team$/)
  await expect(page.getByRole('heading', { level: 1, name: 'Create a Team' })).toBeVisible()
})

test('47 another team: its cookie of 30 days, a reload 100 ms later, and its own lists', async ({
  page,
  visit,
  seeds,
}) => {
  const { admin, id: pro, name } = await seeds.pro()
  const personal = await personalOf(admin)
  await page.clock.install()
  await visit('/pods', { as: admin, team: personal.id })
  await expect(switcher(page)).toHaveAccessibleName(`Team ${personal.name} Hobby`)
  await expect(page.getByText('No pods yet')).toBeVisible()
  await switcher(page).click()
  await expect(teams(page)).toBeVisible()
  await page.clock.pauseAt(Date.now() + 60_000)
  const marked = await mark(page)
  const requests = new Requests(page)
  await teams(page).getByRole('menuitemradio', { name }).click()

  const saved = await cookie(page)
  expect(saved?.value).toBe(pro)
  expect(Math.abs((saved?.expires ?? 0) - (Date.now() / 1000 + 30 * day))).toBeLessThan(60)
  await page.clock.runFor(80)
  await expect(marked).toBeAttached()
  await page.clock.runFor(40)
  await expect(marked).not.toBeAttached()

  await page.clock.resume()
  await expect(switcher(page)).toHaveAccessibleName(`Team ${name} Pro`)
  const asked = (path: '/pods' | '/volumes' | '/ssh-keys') =>
    requests.to('get', path).map((request) => new URL(request.url()).searchParams.get('team_id'))
  for (const path of ['/pods', '/volumes', '/ssh-keys'] as const) {
    await expect.poll(() => asked(path).at(-1)).toBe(pro)
  }
})

test('48a the chosen team is on stage again after a reload', async ({ page, visit, seeds }) => {
  const { admin, id: pro, name } = await seeds.pro()
  await visit('/storage', { as: admin, team: pro })
  await expect(switcher(page)).toHaveAccessibleName(`Team ${name} Pro`)
  await page.reload()
  await expect(switcher(page)).toHaveAccessibleName(`Team ${name} Pro`)
  await expect(page.getByText('checkpoints').first()).toBeVisible()
  expect((await cookie(page))?.value).toBe(pro)
})

for (const [number, what, value] of [
  ['48', 'a team the reader is not in', id('0fae')],
  ['48, too:', 'a damaged cookie', '%E0%A4%A'],
] as const) {
  test(`${number} ${what}: the personal team is on stage`, async ({ page, visit, seeds }) => {
    const { admin } = await seeds.pro()
    const personal = await personalOf(admin)
    const requests = new Requests(page)
    await visit('/storage', { as: admin, team: value })
    await expect(switcher(page)).toHaveAccessibleName(`Team ${personal.name} Hobby`)
    await expect.poll(() => requests.to('get', '/volumes').length).toBeGreaterThan(0)
    for (const request of requests.all) {
      const team = new URL(request.url()).searchParams.get('team_id')
      if (team !== null) expect(team).toBe(personal.id)
    }
  })
}

test('49 the team on stage, chosen again, changes nothing', async ({ page, visit, seeds }) => {
  const { admin, id: pro, name } = await seeds.pro()
  await page.clock.install()
  await visit('/ssh-keys', { as: admin, team: pro })
  await switcher(page).click()
  const marked = await mark(page)
  const before = await cookie(page)
  await teams(page).getByRole('menuitemradio', { name }).click()
  await expect(teams(page)).toHaveCount(0)
  await page.clock.runFor(2000)
  await expect(marked).toBeAttached()
  expect(await cookie(page)).toEqual(before)
})

test('long names and addresses end in an ellipsis and stand whole in the title', async ({
  page,
  visit,
  seeds,
}) => {
  const person = await seeds.hobby()
  const name = 'Very Long Deep Sea Acoustics and Bathymetry Research Collaboration'
  const email = 'somebody.with.an.exceedingly.long.address@research.institute.example.org'
  const team = {
    id: person.teamId,
    name,
    description: '',
    plan: 'pro',
    is_personal: false,
    role: 'admin',
    created_at: '2026-01-01T00:00:00Z',
  } as const
  await answer(page, 'get', '/user/info', {
    user_id: person.userId,
    email,
    personal_team: { id: person.teamId, name },
    teams: [team],
  })
  for (const [width, at] of [
    ['D', 248],
    ['M', 300],
  ] as const) {
    await visit('/ssh-keys', { as: person, width })
    if (width === 'M') await page.getByRole('button', { name: 'Open menu' }).click()
    await switcher(page).click()
    for (const text of [
      switcher(page).getByTitle(name),
      teams(page).getByTitle(name),
      page.getByTitle(email),
    ]) {
      await expect(text).toBeVisible()
      const cut = await text.evaluate((element) => element.scrollWidth > element.clientWidth)
      expect(cut, 'the text is longer than its place').toBe(true)
    }
    await expect(switcher(page).getByText('Pro', { exact: true })).toBeInViewport({ ratio: 1 })
    for (const box of [switcher(page), teams(page)]) {
      const { x = 0, width: wide = 0 } = (await box.boundingBox()) ?? {}
      expect(x + wide).toBeLessThanOrEqual(at)
    }
  }
})
