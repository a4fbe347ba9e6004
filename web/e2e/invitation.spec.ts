// The way of somebody who was invited by mail: from the letter into the team.
import { linkOf, newestLetter } from './client'
import { expect, test } from './fixture'

test('an invitation by mail leads into the team with one click, once', async ({
  visit,
  page,
  seeds,
  homeport,
  browser,
}) => {
  const admin = await seeds.newcomer('captain')
  const team = await seeds.proTeam(admin, 'Night Watch', 3)
  await visit('/teams', { as: admin, team })
  const email = `Guest-${Math.random().toString(36).slice(2, 10)}@Example.com`
  await page.getByRole('textbox', { name: 'Email' }).fill(email)
  await page.getByRole('button', { name: 'Invite', exact: true }).click()
  await expect(
    page.getByText('Invitation sent successfully! The user will be added to the team when they sign up.'),
  ).toBeVisible()
  await expect(page.getByText(email.toLowerCase())).toBeVisible()

  const letter = await newestLetter(homeport, email.toLowerCase())
  expect(letter).toContain(`${admin.email} invited you to the team Night Watch`)
  const guest = await browser.newContext({ baseURL: homeport.url, viewport: { width: 390, height: 844 } })
  const tab = await guest.newPage()
  for (const _ of [1, 2]) {
    // A scanner may have looked before: that spends nothing.
    await tab.goto(linkOf(letter))
    await expect(tab.getByText('Somebody invited you to their team.')).toBeVisible()
  }
  await tab.getByRole('button', { name: 'Sign in' }).click()
  await expect(tab).toHaveURL(/\/create$/)
  await tab.setViewportSize({ width: 1440, height: 900 })
  await tab.goto(`/billing?team_id=${team}`)
  await expect(tab.getByRole('button', { name: /Night Watch/ })).toBeVisible()

  await page.reload()
  await expect(page.getByText('2/3')).toBeVisible()
  await expect(page.getByText('MEMBER', { exact: true })).toBeVisible()
  await guest.close()

  const stranger = await browser.newContext({ baseURL: homeport.url })
  const late = await stranger.newPage()
  await late.goto(linkOf(letter))
  await expect(late).toHaveURL(/\/auth$/)
  await expect(late.getByRole('alert')).toHaveText('Email link is invalid or has expired')
  expect(await late.evaluate(() => localStorage.getItem('homeport-auth'))).toBeNull()
  await stranger.close()
})
