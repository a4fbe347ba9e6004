// Section I of the checks: /teams, who is in the team.
import { answer, Requests, refuse } from './answers'
import { aKey, aPod, aVolume, id } from './bodies'
import { expect, test } from './fixture'
import { expectAccessible } from './looks'
import { aMember, selfOf, stage } from './stage'

test('139 the team shows its name, its plan and how many of its seats are taken', async ({
  page,
  visit,
  seeds,
}) => {
  const { admin, name } = await seeds.pro()
  await visit('/teams', { as: admin })
  const head = page.getByRole('region', { name })
  await expect(head.getByRole('heading', { name })).toBeVisible()
  await expect(head.getByText('Pro', { exact: true })).toBeVisible()
  await expect(head.getByText('3/5', { exact: true })).toBeVisible()
})

test('140 the capacity is what was paid for, else what the plan gives', async ({ page, visit, seeds }) => {
  const hobby = await seeds.hobby()
  const three = [selfOf(hobby), aMember({ id: id('3e', 1) }), aMember({ id: id('3e', 2) })]
  for (const [seats, shown] of [
    [12, '3/12'],
    [0, '3/5'],
  ] as const) {
    const team = await stage(page, hobby, { max_members: seats }, three)
    await visit('/teams', { as: hobby, team })
    await expect(page.getByText(shown, { exact: true })).toBeVisible()
  }
  await page.unrouteAll()
  await visit('/teams', { as: hobby })
  await expect(page.getByText('1/1', { exact: true })).toBeVisible()
})

test('141 roles are in upper case, those of the others in blue', async ({ page, visit, seeds }) => {
  const { admin, member, viewer } = await seeds.pro()
  await visit('/teams', { as: admin })
  const tide = 'oklch(0.78 0.11 228)'
  for (const [person, role, blue] of [
    [admin, 'ADMIN', false],
    [member, 'MEMBER', true],
    [viewer, 'VIEWER', true],
  ] as const) {
    const word = page.getByRole('listitem').filter({ hasText: person.email }).getByText(role, { exact: true })
    await expect(word).toBeVisible()
    if (blue) await expect(word).toHaveCSS('color', tide)
    else await expect(word).not.toHaveCSS('color', tide)
  }
})

test('149 a hobby team is offered Pro instead of the invite form', async ({ page, visit, seeds }) => {
  await visit('/teams', { as: await seeds.hobby() })
  await expect(page.getByRole('button', { name: 'Invite' })).toHaveCount(0)
  await page.getByRole('link', { name: 'Upgrade to Pro to invite team members' }).click()
  await expect(page).toHaveURL(/\/create-team$/)
})

test('150 nobody is removed from a personal team', async ({ page, visit, seeds }) => {
  const as = await seeds.hobby()
  await visit('/teams', { as })
  const remove = page.getByRole('button', { name: `Remove ${as.email}` })
  await expect(remove).toBeDisabled()
  await expect(remove).toHaveAttribute('title', 'Cannot remove member from personal team')
})

test('151 the last member stays', async ({ page, visit, seeds }) => {
  const as = await seeds.hobby()
  const team = await stage(page, as)
  await visit('/teams', { as, team })
  const remove = page.getByRole('button', { name: `Remove ${as.email}` })
  await expect(remove).toBeDisabled()
  await expect(remove).toHaveAttribute('title', 'Cannot remove the last team member')
})

test("152 an admin's own row cannot be removed", async ({ page, visit, seeds }) => {
  const { admin, member } = await seeds.pro()
  await visit('/teams', { as: admin })
  const remove = page.getByRole('button', { name: `Remove ${admin.email}` })
  await expect(remove).toBeDisabled()
  await expect(remove).toHaveAttribute('title', 'Admins cannot remove themselves')
  await expect(page.getByRole('button', { name: `Remove ${member.email}` })).toBeEnabled()
})

test('153 of several reasons the first is told: personal, last member, admin', async ({
  page,
  visit,
  seeds,
}) => {
  const as = await seeds.hobby()
  const two = [selfOf(as), aMember()]
  for (const [part, members, reason] of [
    [{ is_personal: true }, [selfOf(as)], 'Cannot remove member from personal team'],
    [{ is_personal: true }, two, 'Cannot remove member from personal team'],
    [{}, [selfOf(as)], 'Cannot remove the last team member'],
    [{}, two, 'Admins cannot remove themselves'],
  ] as const) {
    const team = await stage(page, as, part, [...members])
    await visit('/teams', { as, team })
    await expect(page.getByRole('button', { name: `Remove ${as.email}` })).toHaveAttribute('title', reason)
  }
})

test('154 a removed member is gone after a question, or still there after a failure', async ({
  page,
  visit,
  seeds,
}) => {
  const { admin, viewer, id: team } = await seeds.pro()
  const requests = new Requests(page)
  await visit('/teams', { as: admin })
  const remove = page.getByRole('button', { name: `Remove ${viewer.email}` })
  const confirm = page.getByRole('alertdialog', { name: 'Remove Member' })
  await remove.click()
  await confirm.getByRole('button', { name: 'Cancel' }).click()
  await expect(confirm).toHaveCount(0)
  expect(requests.to('delete', '/teams/{id}/members/{userId}')).toEqual([])

  await refuse(page, 'delete', '/teams/{id}/members/{userId}', 500)
  await remove.click()
  await confirm.getByRole('button', { name: 'Remove' }).click()
  await expect(page.getByRole('alert')).toHaveText('Failed to remove team member')
  await expect(remove).toBeEnabled()

  await page.unrouteAll()
  await remove.click()
  await confirm.getByRole('button', { name: 'Remove' }).click()
  await expect(remove).toHaveCount(0)
  await expect(page.getByText('2/5', { exact: true })).toBeVisible()
  expect(new URL(requests.to('delete', '/teams/{id}/members/{userId}').at(-1)?.url() ?? '').pathname).toBe(
    `/api/teams/${team}/members/${viewer.userId}`,
  )
  await admin.post(`/teams/${team}/invite`, { email: viewer.email })
  await admin.patch(`/teams/${team}/members/${viewer.userId}`, { role: 'viewer' })
})

test('155 a failure says so, and members are fresh for a minute', async ({ page, visit, seeds }) => {
  const { admin, member } = await seeds.pro()
  const start = Date.now()
  const after = (seconds: number) => page.clock.setFixedTime(start + seconds * 1000)
  await after(0)
  const requests = new Requests(page)
  await visit('/teams', { as: admin })
  await expect(page.getByText(member.email)).toBeVisible()
  const count = () => requests.to('get', '/teams/{id}/members').length
  const first = count()
  const revisit = async () => {
    await page.getByRole('link', { name: 'SSH Keys' }).click()
    await expect(page.getByRole('heading', { name: 'SSH Keys', level: 1 })).toBeVisible()
    await page.getByRole('link', { name: 'Manage Team' }).click()
    await expect(page.getByText(member.email)).toBeVisible()
  }
  await after(59)
  await revisit()
  expect(count()).toBe(first)
  await after(61)
  await revisit()
  await expect.poll(count).toBe(first + 1)
  await refuse(page, 'get', '/teams/{id}/members', 500)
  await after(123)
  await revisit()
  await expect(page.getByText('Failed to fetch team members')).toBeVisible()
  await expect(page.getByText(member.email), 'the old rows stay').toBeVisible()
})

test('156a a member manages nobody and deletes only what is theirs, a viewer creates nothing', async ({
  page,
  visit,
  seeds,
}) => {
  const { admin, member, viewer, invited } = await seeds.pro()
  const barred = async (name: string | RegExp, title: string) => {
    const button = page.getByRole('button', { name })
    await expect(button).toBeDisabled()
    await expect(button).toHaveAttribute('title', title)
  }
  await visit('/teams', { as: member })
  const onlyAdmins = 'Only admins can do this'
  await barred('Invite', onlyAdmins)
  await barred(`Cancel the invitation of ${invited}`, onlyAdmins)
  await barred(`Remove ${admin.email}`, onlyAdmins)
  await barred(`Remove ${viewer.email}`, onlyAdmins)
  await barred('Delete team', onlyAdmins)
  await expect(page.getByRole('button', { name: 'Leave' })).toBeEnabled()
  await expect(page.getByRole('combobox')).toHaveCount(0) // no role to change

  const others = 'Only its creator or an admin can delete this'
  const team_id = member.teamId
  await answer(page, 'get', '/pods', [aPod({ id: id('9a'), team_id, created_by: admin.userId })])
  await answer(page, 'get', '/volumes', [
    aVolume({ id: id('71'), team_id, name: 'theirs', created_by: admin.userId }),
    aVolume({ id: id('72'), team_id, name: 'mine', created_by: member.userId }),
  ])
  await answer(page, 'get', '/ssh-keys', [aKey({ team_id, name: 'theirs', created_by: admin.userId })])
  const go = (name: string) => page.getByRole('link', { name }).click()
  await visit('/pods', { as: member })
  await barred(/^Delete/, others)
  await go('Storage')
  await barred('Delete volume theirs', others)
  await expect(page.getByRole('button', { name: 'Delete volume mine' })).toBeEnabled()
  await go('SSH Keys')
  await barred('Delete SSH key theirs', others)

  const cannot = 'Viewers cannot create or change anything'
  await visit('/storage', { as: viewer })
  await barred('New Storage Volume', cannot)
  await go('SSH Keys')
  await barred('Create SSH Key', cannot)
  await go('Create New Instance')
  await barred('Create Instance', cannot)
})

test('157 a visitor is told to sign in and can do nothing', async ({ page, visit }) => {
  const requests = new Requests(page)
  for (const width of ['D', 'M'] as const) {
    await visit('/teams', { width })
    await expect(page.getByText('No team selected, sign in to create a team')).toBeVisible()
    await expect(page.getByLabel('Email')).toBeDisabled()
    for (const name of ['Invite', 'Delete team']) {
      const button = page.getByRole('button', { name })
      await expect(button).toBeDisabled()
      await expect(button).toHaveAttribute('title', 'Sign in to manage teams')
    }
    await expectAccessible(page)
  }
  expect(requests.to('get', '/teams/{id}/members')).toEqual([])
})
