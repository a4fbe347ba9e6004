// Section M of the checks: the modal and the dialogs.
import type { Locator, Page } from '@playwright/test'
import { answer, hold, refuse } from './answers'
import { aPod, aVolume } from './bodies'
import type { Client } from './client'
import { expect, test } from './fixture'

/** Opens /storage with a clock that stands still, as somebody who may make a first volume. */
async function storage(
  page: Page,
  visit: (path: string, options: { as: Client }) => Promise<void>,
  as: Client,
): Promise<void> {
  await answer(page, 'get', '/volumes', [])
  await page.clock.install()
  await visit('/storage', { as })
  await expect(page.getByText('No storage volumes yet')).toBeVisible()
  await page.clock.pauseAt(new Date(Date.now() + 60_000))
}

/** Asks for a volume with the keyboard: the pointer stays where it is. */
async function makeVolume(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'New Storage Volume' }).first().press('Enter')
  await page.getByRole('dialog').getByLabel('Name').press('Enter')
}

test('197 a loading modal advances each 50 ms, to 95 % after 2 s and no further', async ({
  page,
  visit,
  seeds,
}) => {
  await answer(page, 'post', '/volumes', aVolume())
  const release = await hold(page, 'post', '/volumes')
  await storage(page, visit, await seeds.hobby())
  await makeVolume(page)
  const bar = page.getByRole('dialog', { name: 'Creating volume' }).getByRole('progressbar')
  let passed = 0
  const at = async (milliseconds: number, percent: number) => {
    await page.clock.runFor(milliseconds - passed)
    passed = milliseconds
    await expect(bar, `after ${milliseconds} ms`).toHaveAttribute('aria-valuenow', String(percent))
  }
  await expect(bar).toHaveAttribute('aria-valuenow', '0')
  await at(49, 0)
  await at(50, 2)
  await at(100, 5)
  await at(150, 7)
  await at(1000, 48)
  await at(1950, 93)
  await at(2000, 95)
  await at(62_000, 95)
  release()
  await expect(page.getByRole('dialog', { name: 'Volume created' })).toBeVisible()
})

test('198 success and error close by themselves after 5 s, unless looked at; others stay', async ({
  page,
  visit,
  seeds,
}) => {
  await page.mouse.move(5, 5)
  await storage(page, visit, await seeds.hobby())
  const success = page.getByRole('dialog', { name: 'Volume created' })
  const error = page.getByRole('dialog', { name: 'Volume not created' })
  const closesAfter5s = async (modal: Locator) => {
    await page.clock.runFor(4999)
    await expect(modal).toBeVisible()
    await page.clock.runFor(1)
    await expect(modal).toHaveCount(0)
    await page.clock.runFor(100)
  }
  await refuse(page, 'post', '/volumes', 409, 'quota')
  await makeVolume(page)
  await expect(error).toBeVisible()
  await closesAfter5s(error)

  // Under the pointer it waits, and has its 5 s again when the pointer has gone.
  await makeVolume(page)
  await error.hover()
  await page.clock.runFor(20_000)
  await expect(error).toBeVisible()
  await page.mouse.move(5, 5)
  await closesAfter5s(error)

  // With the focus on its button it waits too.
  await makeVolume(page)
  await expect(error).toBeVisible()
  await page.keyboard.press('Tab')
  await expect(error.getByRole('button', { name: 'Close' })).toBeFocused()
  await page.clock.runFor(20_000)
  await expect(error).toBeVisible()
  await page.keyboard.press('Enter')
  await expect(error).toHaveCount(0)
  await page.clock.runFor(100)

  // A question waits for its answer, work for its end.
  const release = await hold(page, 'post', '/volumes')
  await makeVolume(page)
  await page.clock.runFor(60_000)
  await expect(page.getByRole('dialog', { name: 'Creating volume' })).toBeVisible()
  await answer(page, 'post', '/volumes', aVolume())
  release()
  await expect(error).toBeVisible()
  await closesAfter5s(error)
  await makeVolume(page)
  await expect(success).toBeVisible()
  await closesAfter5s(success)
})

test('198a a question does not close by itself', async ({ page, visit, seeds }) => {
  await page.clock.install()
  await visit('/storage', { as: await seeds.hobby1() })
  await page
    .getByRole('row', { name: /datasets/ })
    .getByRole('button', { name: /^Delete/ })
    .click()
  const question = page.getByRole('alertdialog', { name: 'Delete Volume' })
  await page.mouse.move(5, 5)
  await page.clock.runFor(60_000)
  await expect(question).toBeVisible()
})

test('199 a modal with somewhere to go says where, and goes there', async ({ page, visit, seeds }) => {
  await answer(page, 'get', '/volumes', [])
  await answer(page, 'post', '/volumes', aVolume())
  await visit('/storage', { as: await seeds.hobby() })
  await makeVolume(page)
  const modal = page.getByRole('dialog', { name: 'Volume created' })
  await modal.getByRole('link', { name: 'Create New Instance' }).click()
  await expect(page).toHaveURL(/\/create$/)
  await expect(modal).toHaveCount(0)
  await expect(page.getByRole('heading', { level: 1, name: 'Create New Instance' })).toBeFocused()
})

test('200 every dialog has a name, holds the focus, closes with Esc and gives the focus back', async ({
  page,
  visit,
  seeds,
}) => {
  const [hobby, hobby1] = [await seeds.hobby(), await seeds.hobby1()]
  await answer(page, 'get', '/pods', [aPod({ team_id: hobby1.teamId, created_by: hobby1.userId })])
  const main = page.getByRole('main')
  const check = async (opener: Locator, role: 'dialog' | 'alertdialog', name: string) => {
    await opener.focus()
    await page.keyboard.press(name === 'Command palette' ? 'Control+k' : 'Enter')
    const dialog = page.getByRole(role, { name, exact: true })
    await expect(dialog).toBeVisible()
    const inside = () => dialog.evaluate((box) => box.contains(document.activeElement))
    await expect.poll(inside).toBe(true)
    for (let i = 0; i < 6; i++) {
      await page.keyboard.press('Tab')
      expect(await inside(), `${name}: Tab ${i + 1}`).toBe(true)
    }
    await page.keyboard.press('Escape')
    await expect(dialog).toHaveCount(0)
    await expect(opener).toBeFocused()
  }
  await visit('/storage', { as: hobby })
  await check(main.getByRole('button', { name: 'New Storage Volume' }), 'dialog', 'New Storage Volume')
  await visit('/storage', { as: hobby1 })
  await check(main.getByRole('button', { name: /^Delete/ }), 'alertdialog', 'Delete Volume')
  await visit('/ssh-keys', { as: hobby1 })
  await check(main.getByRole('button', { name: 'Create SSH Key' }), 'dialog', 'Create SSH Key')
  await check(main.getByRole('button', { name: /^Delete/ }), 'alertdialog', 'Delete SSH Key')
  await visit('/pods', { as: hobby1 })
  await check(main.getByRole('button', { name: 'Delete' }), 'alertdialog', 'Delete Pod')
  await check(main.getByRole('button', { name: 'Copy SSH command' }), 'dialog', 'Command palette')
  await visit('/create-team', { as: hobby1 })
  await check(main.getByRole('button', { name: 'Upgrade to Pro' }), 'dialog', 'Team Details')
})

test('200a the focus finds back through a form, its progress and its message', async ({
  page,
  visit,
  seeds,
}) => {
  await answer(page, 'get', '/volumes', [])
  await refuse(page, 'post', '/volumes', 409, 'quota')
  await visit('/storage', { as: await seeds.hobby() })
  await makeVolume(page)
  const error = page.getByRole('dialog', { name: 'Volume not created' })
  await expect(error).toBeVisible()
  await page.keyboard.press('Escape')
  await expect(error).toHaveCount(0)
  await expect(page.getByRole('button', { name: 'New Storage Volume' }).first()).toBeFocused()
})
