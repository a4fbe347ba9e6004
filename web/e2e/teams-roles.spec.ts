// Section I of the checks: /teams, roles, leaving and the end of a team.
import type { Page } from '@playwright/test'
import { hold, Requests, refuse } from './answers'
import type { Client } from './client'
import { expect, test } from './fixture'

interface Person {
  user_id: string
  role: string
}

const roleOf = (page: Page, person: Client) => page.getByRole('combobox', { name: `Role of ${person.email}` })
const row = (page: Page, person: Client) => page.getByRole('listitem').filter({ hasText: person.email })
const word = (page: Page, person: Client, role: string) => row(page, person).getByText(role, { exact: true })

/** Confirms the question that a change of role asks. */
async function confirmRole(page: Page): Promise<void> {
  await page
    .getByRole('alertdialog', { name: 'Change Role' })
    .getByRole('button', { name: 'Change role' })
    .click()
}

test('an admin gives a member another role', async ({ page, visit, seeds }) => {
  const { admin, member, id: team } = await seeds.pro()
  const requests = new Requests(page)
  await visit('/teams', { as: admin })
  await expect(roleOf(page, admin), 'nobody changes their own').toHaveCount(0)
  await roleOf(page, member).selectOption('Viewer')
  await page.getByRole('alertdialog').getByRole('button', { name: 'Cancel' }).click()
  await expect(roleOf(page, member)).toHaveValue('member')
  expect(requests.to('patch', '/teams/{id}/members/{userId}')).toEqual([])

  await refuse(page, 'patch', '/teams/{id}/members/{userId}', 409, 'The last admin of a team stays admin.')
  const release = await hold(page, 'patch', '/teams/{id}/members/{userId}')
  const read = await hold(page, 'get', '/teams/{id}/members') // what follows does not wait for a reading
  await roleOf(page, member).selectOption('Viewer')
  await expect(page.getByText(`Make ${member.email} a viewer?`)).toBeVisible()
  await confirmRole(page)
  await expect(word(page, member, 'VIEWER')).toBeVisible()
  release()
  await expect(page.getByRole('alert')).toContainText('Failed to change role')
  await expect(page.getByRole('alert')).toContainText('The last admin of a team stays admin.')
  await expect(word(page, member, 'MEMBER')).toBeVisible()
  read()

  await page.unrouteAll()
  await roleOf(page, member).selectOption('Viewer')
  await confirmRole(page)
  await expect(word(page, member, 'VIEWER')).toBeVisible()
  const role = async () =>
    (await admin.get<Person[]>(`/teams/${team}/members`)).find((m) => m.user_id === member.userId)?.role
  await expect.poll(role).toBe('viewer')
  await admin.patch(`/teams/${team}/members/${member.userId}`, { role: 'member' })
})

test('a member leaves and is back in the personal team', async ({ page, visit, seeds }) => {
  const { admin, member, id: team } = await seeds.pro()
  const own = (await member.get<{ personal_team: { id: string } }>('/user/info')).personal_team.id
  await visit('/teams', { as: member })
  await page.getByRole('button', { name: 'Leave' }).click()
  await page.getByRole('alertdialog', { name: 'Leave Team' }).getByRole('button', { name: 'Leave' }).click()
  await expect(page).toHaveURL(/\/create$/)
  const requests = new Requests(page)
  await page.getByRole('link', { name: 'Pods' }).click()
  await expect.poll(() => requests.to('get', '/pods').at(-1)?.url() ?? '').toContain(own)
  await admin.post(`/teams/${team}/invite`, { email: member.email })
})

test('156 a team ends when its name is typed, and its admin is back in the personal team', async ({
  page,
  visit,
  seeds,
}) => {
  const hobby = await seeds.hobby()
  await visit('/teams', { as: hobby })
  const open = page.getByRole('button', { name: 'Delete team' })
  await expect(open).toBeDisabled()
  await expect(open).toHaveAttribute('title', 'Personal teams cannot be deleted')

  const admin = await seeds.newcomer('founder')
  const personal = admin.teamId
  const team = await seeds.proTeam(admin, 'Short Lived', 2)
  await visit('/teams', { as: admin, team })
  const dialog = page.getByRole('dialog', { name: 'Delete Team' })
  const end = dialog.getByRole('button', { name: 'Delete' })
  await open.click()
  await expect(end).toBeDisabled()
  await dialog.getByLabel('Team name').fill('short lived')
  await expect(end).toBeDisabled()

  await refuse(page, 'delete', '/teams/{id}', 409, 'Delete the 2 running pods first.')
  await dialog.getByLabel('Team name').fill('Short Lived')
  await end.click()
  await expect(page.getByRole('alert').getByText('Failed to delete team', { exact: true })).toBeVisible()
  await expect(page.getByRole('alert')).toContainText('Delete the 2 running pods first.')
  await expect(page).toHaveURL(/\/teams$/)

  await page.unrouteAll()
  await open.click()
  await expect(dialog.getByLabel('Team name')).toHaveValue('')
  await dialog.getByLabel('Team name').fill('Short Lived')
  const requests = new Requests(page)
  await page.keyboard.press('Enter')
  await expect(page).toHaveURL(/\/create$/)
  await expect
    .poll(() =>
      requests
        .to('get', '/resources')
        .map((request) => request.url())
        .join(),
    )
    .toContain(`team_id=${personal}`)
  expect((await admin.get<{ teams: { id: string }[] }>('/user/info')).teams.map((t) => t.id)).toEqual([
    personal,
  ])
})
