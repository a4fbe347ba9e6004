// Beyond the checks: /teams, another name for the team.
import { refuse } from './answers'
import { expect, test } from './fixture'
import { expectAccessible, expectNoOverflow } from './looks'

for (const width of ['D', 'M'] as const) {
  test(`an admin renames the team, at ${width}`, async ({ page, visit, seeds }) => {
    const admin = await seeds.newcomer('founder')
    const team = await seeds.proTeam(admin, 'Working Title', 1)
    await visit('/teams', { as: admin, team, width })
    const open = page.getByRole('button', { name: 'Rename team' })
    await open.focus()
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog', { name: 'Rename Team' })
    const field = dialog.getByLabel('Team name')
    await expect(field).toBeFocused()
    await expect(field).toHaveValue('Working Title')
    await field.fill('   ')
    await page.keyboard.press('Enter')
    await expect(dialog.getByRole('alert')).toHaveText('Team name is required')
    await refuse(page, 'patch', '/teams/{id}', 422, 'The team name must have 1 to 80 characters.')
    await field.fill('Deep Water Research and Instrumentation Group of the Northern Harbour Institute')
    await page.keyboard.press('Enter')
    await expect(dialog.getByRole('alert')).toHaveText('The team name must have 1 to 80 characters.')
    await expectAccessible(page)
    await page.unrouteAll()
    await page.keyboard.press('Enter')
    await expect(dialog).toHaveCount(0)
    await expect(open).toBeFocused()
    await expect(page.getByRole('main').getByRole('heading', { name: /^Deep Water Research/ })).toBeVisible()
    await expectNoOverflow(page)
    const { teams } = await admin.get<{ teams: { id: string; name: string }[] }>('/user/info')
    expect(teams.find(({ id }) => id === team)?.name).toMatch(/^Deep Water Research/)
  })
}

test('only admins rename, and Esc changes nothing', async ({ page, visit, seeds }) => {
  const { admin, member, name } = await seeds.pro()
  await visit('/teams', { as: member })
  await expect(page.getByRole('region', { name })).toBeVisible()
  await expect(page.getByRole('button', { name: 'Rename team' })).toHaveCount(0)
  await visit('/teams', { as: admin })
  await page.getByRole('button', { name: 'Rename team' }).click()
  await page.getByLabel('Team name').fill('Other')
  await page.keyboard.press('Escape')
  await expect(page.getByRole('region', { name })).toBeVisible()
  await page.getByRole('button', { name: 'Rename team' }).click()
  await expect(page.getByLabel('Team name')).toHaveValue(name)
})

test('the seats lead to the plan', async ({ page, visit, seeds }) => {
  await visit('/teams', { as: (await seeds.pro()).admin })
  await page.getByRole('link', { name: 'Change seats and plan' }).click()
  await expect(page).toHaveURL(/\/billing#plan$/)
  await expect(page.getByRole('region', { name: 'Plan and limits' })).toBeInViewport()
})
