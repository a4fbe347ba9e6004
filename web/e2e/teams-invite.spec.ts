// Section I of the checks: /teams, who may come.
import type { Page } from '@playwright/test'
import { answer, hold, Requests, refuse } from './answers'
import { id } from './bodies'
import { expect, test } from './fixture'
import { Watch } from './looks'
import { aMember, anInvitation, selfOf, stage } from './stage'

const field = (page: Page) => page.getByLabel('Email')
const invite = (page: Page) => page.getByRole('button', { name: 'Invite', exact: true })
const pending = (page: Page) => page.getByRole('heading', { name: 'Pending invitations' })
const cancelOf = (email: string) => `Cancel the invitation of ${email}`

test('142 a pro team lists who was invited, a hobby team asks nothing', async ({ page, visit, seeds }) => {
  const { admin, invited } = await seeds.pro()
  const requests = new Requests(page)
  await visit('/teams', { as: admin })
  await expect(pending(page)).toBeVisible()
  const row = page.getByRole('listitem').filter({ hasText: invited })
  await expect(row.getByRole('button', { name: 'Cancel' })).toBeEnabled()
  expect(requests.to('get', '/teams/{id}/pending-invitations')).toHaveLength(1)

  const before = requests.all.length
  await visit('/teams', { as: await seeds.hobby() })
  await expect(page.getByText('1/1', { exact: true })).toBeVisible()
  await expect(pending(page)).toHaveCount(0)
  await expect.poll(() => requests.all.length).toBeGreaterThan(before)
  expect(requests.to('get', '/teams/{id}/pending-invitations')).toHaveLength(1)
})

test('143 a cancelled invitation goes, a failure brings it back, an unread list is silent', async ({
  page,
  visit,
  seeds,
  homeport,
}) => {
  const { admin, id: team } = await seeds.pro()
  const email = 'other-143@example.com'
  await admin.post(`/teams/${team}/invite`, { email })
  const requests = new Requests(page)
  await visit('/teams', { as: admin })
  const cancel = page.getByRole('button', { name: cancelOf(email) })
  await expect(cancel).toBeEnabled()

  const read = await hold(page, 'get', '/teams/{id}/pending-invitations') // the page brings it back by itself
  await refuse(page, 'delete', '/teams/{id}/pending-invitations/{invitationId}', 500)
  const release = await hold(page, 'delete', '/teams/{id}/pending-invitations/{invitationId}')
  await cancel.click()
  await expect(cancel).toHaveCount(0)
  release()
  await expect(page.getByRole('alert')).toHaveText('Failed to cancel invitation')
  await expect(cancel).toBeEnabled()

  read()
  await page.unrouteAll()
  const [row] = (
    await admin.get<{ id: string; email: string }[]>(`/teams/${team}/pending-invitations`)
  ).filter((invitation) => invitation.email === email)
  await cancel.click()
  await expect(cancel).toHaveCount(0)
  const paths = requests
    .to('delete', '/teams/{id}/pending-invitations/{invitationId}')
    .map((request) => new URL(request.url()).pathname)
  expect(paths.at(-1)).toBe(`/api/teams/${team}/pending-invitations/${row?.id}`)
  const left = async () =>
    (await admin.get<{ email: string }[]>(`/teams/${team}/pending-invitations`)).map((i) => i.email)
  await expect.poll(left).not.toContain(email)

  const watch = new Watch(page, homeport.url)
  await refuse(page, 'get', '/teams/{id}/pending-invitations', 500, 'boom')
  await visit('/teams', { as: admin })
  await expect.poll(() => watch.errors.join('\n')).toContain('query failed invitations')
  await expect(page.getByText('3/5', { exact: true })).toBeVisible()
  await expect(pending(page)).toHaveCount(0)
  await expect(page.getByRole('alert')).toHaveCount(0)
  await expect(page.getByText('boom')).toHaveCount(0)
})

test('144 the address is checked at each keystroke', async ({ page, visit, seeds }) => {
  const { admin } = await seeds.pro()
  await visit('/teams', { as: admin })
  const problem = page.getByRole('alert')
  await expect(problem).toHaveCount(0)
  await field(page).pressSequentially('a@')
  await expect(problem).toHaveText('Please enter a valid email address')
  await field(page).press('Backspace')
  await field(page).press('Backspace')
  await expect(problem).toHaveText('Email is required')
  const at = '@example.com'
  await field(page).fill('a'.repeat(256 - at.length) + at)
  await expect(problem).toHaveText('Email must be less than 255 characters')
  await field(page).fill('a'.repeat(255 - at.length) + at)
  await expect(problem).toHaveCount(0)
  await expect(invite(page)).toBeEnabled()
})

test('145 there is no inviting without an address or without a seat', async ({ page, visit, seeds }) => {
  const { admin } = await seeds.pro()
  await visit('/teams', { as: admin }) // 3 members, 1 invitation, 5 seats
  await expect(page.getByText('3/5', { exact: true })).toBeVisible()
  await expect(invite(page)).toBeDisabled()
  await field(page).fill('not an address')
  await expect(invite(page)).toBeDisabled()
  await field(page).fill('new@example.com')
  await expect(invite(page)).toBeEnabled()

  const as = await seeds.hobby()
  const three = [selfOf(as), aMember({ id: id('3e', 1) }), aMember({ id: id('3e', 2) })]
  const two = [anInvitation(), anInvitation({ id: id('15'), email: 'second@example.com' })]
  for (const [invitations, full] of [
    [two, true],
    [two.slice(1), false],
  ] as const) {
    const team = await stage(page, as, { max_members: 5 }, three, [...invitations])
    await visit('/teams', { as, team })
    await expect(pending(page)).toBeVisible()
    await field(page).fill('new@example.com')
    await expect(invite(page)).toBeEnabled({ enabled: !full })
    if (full) await expect(invite(page)).toHaveAttribute('title', 'Every seat is taken')
  }
})

test('146 somebody known joins at once', async ({ page, visit, seeds }) => {
  const { admin, id: team } = await seeds.pro()
  const friend = await seeds.newcomer('friend')
  const requests = new Requests(page)
  await visit('/teams', { as: admin })
  await expect(page.getByText('3/5', { exact: true })).toBeVisible()
  const before = requests.to('get', '/teams/{id}/members').length
  await field(page).fill(` ${friend.email} `)
  await field(page).press('Enter')
  await expect(page.getByRole('status')).toHaveText('User added to team successfully!')
  await expect(page.getByText(friend.email)).toBeVisible()
  await expect(page.getByText('4/5', { exact: true })).toBeVisible()
  await expect(field(page)).toHaveValue('')
  expect(requests.to('get', '/teams/{id}/members').length).toBe(before + 1)
  expect(requests.to('post', '/teams/{id}/invite').map((r) => r.postDataJSON())).toEqual([
    { email: friend.email },
  ])
  await admin.delete(`/teams/${team}/members/${friend.userId}`)
})

test('147 somebody unknown is invited', async ({ page, visit, seeds }) => {
  const { admin, id: team } = await seeds.pro()
  const requests = new Requests(page)
  await visit('/teams', { as: admin })
  await expect(pending(page)).toBeVisible()
  const before = requests.to('get', '/teams/{id}/pending-invitations').length
  await field(page).fill('unknown-147@example.com')
  await invite(page).click()
  await expect(page.getByRole('status')).toHaveText(
    'Invitation sent successfully! The user will be added to the team when they sign up.',
  )
  await expect(page.getByRole('button', { name: cancelOf('unknown-147@example.com') })).toBeVisible()
  expect(requests.to('get', '/teams/{id}/pending-invitations').length).toBe(before + 1)
  const rows = await admin.get<{ id: string; email: string }[]>(`/teams/${team}/pending-invitations`)
  const made = rows.find((row) => row.email === 'unknown-147@example.com')
  await admin.delete(`/teams/${team}/pending-invitations/${made?.id}`)
})

test('148 a failed invitation tells the detail, or a fallback', async ({ page, visit, seeds }) => {
  const { admin, member } = await seeds.pro()
  await visit('/teams', { as: admin })
  await field(page).fill(member.email)
  await invite(page).click()
  await expect(page.getByRole('alert')).toHaveText('This person is a member of the team already.')
  await expect(field(page), 'what was typed is not lost').toHaveValue(member.email)
  await page.getByRole('alert').getByRole('button', { name: 'Close' }).click()
  await refuse(page, 'post', '/teams/{id}/invite', 500)
  await invite(page).click()
  await expect(page.getByRole('alert')).toHaveText('Failed to send invitation')
})

test('two clicks invite once', async ({ page, visit, seeds }) => {
  const as = await seeds.hobby()
  const team = await stage(page, as, { max_members: 5 })
  await answer(page, 'post', '/teams/{id}/invite', { status: 'pending' })
  const release = await hold(page, 'post', '/teams/{id}/invite')
  const requests = new Requests(page)
  await visit('/teams', { as, team })
  await field(page).fill('new@example.com')
  await field(page).press('Enter')
  await field(page).press('Enter')
  await expect(invite(page)).toBeDisabled()
  release()
  await expect(page.getByRole('status')).toContainText('Invitation sent successfully!')
  expect(requests.to('post', '/teams/{id}/invite')).toHaveLength(1)
})
