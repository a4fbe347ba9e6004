// Beyond the checks: what a team is told about its money, above every page.
import { answer, hold, refuse } from './answers'
import { ago, aPod, id } from './bodies'
import { expect, test } from './fixture'
import { expectAccessible, expectNoOverflow } from './looks'

const runway = {
  id: id('runway'),
  team_id: id('team'),
  kind: 'runway_1h' as const,
  created_at: ago(60),
  ends_at: ago(-3_000),
  balance: 0.83,
  spending_per_hour: 1,
  month_spent: 0,
  month_limit: 0,
  volumes: 0,
}
const spend = {
  ...runway,
  id: id('spend'),
  kind: 'spend_95' as const,
  ends_at: null,
  month_spent: 950,
  month_limit: 1000,
}

test('nothing is told while all is well', async ({ page, visit, seeds }) => {
  const read = page.waitForResponse((response) => response.url().includes('/api/notices?team_id='))
  await visit('/pods', { as: await seeds.hobby() })
  expect(await (await read).json()).toEqual([])
  await expect(page.getByRole('region', { name: 'About your money' })).toHaveCount(0)
})

test('a short balance and a used limit are told, and dismissed one by one', async ({
  page,
  visit,
  seeds,
}) => {
  let told = [runway, spend]
  await answer(page, 'get', '/notices', () => told)
  await answer(page, 'delete', '/notices/{id}', (request) => {
    told = told.filter((each) => !request.url().includes(each.id))
    return undefined
  })
  for (const width of ['D', 'M'] as const) {
    await visit('/pods', { as: await seeds.hobby(), width })
    const region = page.getByRole('region', { name: 'About your money' })
    await expect(region.getByText('Less than 1 hour of balance left')).toBeVisible()
    await expect(region.getByText("95% of this month's spend limit is used")).toBeVisible()
    await expect(region.getByText('$950.00 of $1,000.00 was spent this month.')).toBeVisible()
    await expectNoOverflow(page)
    await expectAccessible(page)
  }
  await page.getByRole('button', { name: 'Dismiss: Less than 1 hour of balance left' }).click()
  await expect(page.getByText('Less than 1 hour of balance left')).toHaveCount(0)
  await expect(page.getByText("95% of this month's spend limit is used")).toBeVisible()
  await page.getByRole('link', { name: 'See your spending' }).click()
  await expect(page).toHaveURL(/\/billing$/)
})

test('what is told of the money follows the end of a pod at once', async ({ page, visit, seeds }) => {
  const as = await seeds.hobby()
  let running = true
  const pod = aPod({ team_id: as.teamId, created_by: as.userId })
  await answer(page, 'get', '/pods', () => (running ? [pod] : []))
  await answer(page, 'delete', '/pods/{id}', () => {
    running = false
    return undefined
  })
  await answer(page, 'get', '/notices', () => (running ? [runway] : []))
  await visit('/pods', { as })
  await expect(page.getByText('Less than 1 hour of balance left')).toBeVisible()
  await page.getByRole('article').getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('alertdialog').getByRole('button', { name: 'Delete' }).click()
  await expect(page.getByText('Less than 1 hour of balance left')).toHaveCount(0)
})

test('a notice that could not be dismissed comes back', async ({ page, visit, seeds }) => {
  await answer(page, 'get', '/notices', [runway])
  await refuse(page, 'delete', '/notices/{id}', 503)
  await visit('/pods', { as: await seeds.hobby() })
  const told = page.getByText('Less than 1 hour of balance left')
  await expect(told).toBeVisible()
  const read = await hold(page, 'get', '/notices') // the page brings it back by itself
  const release = await hold(page, 'delete', '/notices/{id}')
  await page.getByRole('button', { name: 'Dismiss: Less than 1 hour of balance left' }).click()
  await expect(told).toHaveCount(0)
  release()
  await expect(told).toBeVisible()
  read()
})
