// Section C of the checks: the shell, its links and its drawer.
import type { Locator, Page } from '@playwright/test'
import { expect, test, widths } from './fixture'
import { expectAccessible, expectNoOverflow } from './looks'

const products = ['/create', '/pods', '/storage', '/batch-inference', '/multi-node-clusters']
const settings = ['/ssh-keys', '/teams', '/billing']
/** The last width of the top bar, and a phone. */
const narrow = [{ width: 1023, height: 768 }, widths.M]

const sidebar = (page: Page) => page.getByRole('navigation', { name: 'Main' })
const menuButton = (page: Page) => page.getByRole('button', { name: 'Open menu' })
const drawer = (page: Page) => page.getByRole('dialog', { name: 'Menu' })

const targets = (links: Locator) =>
  links.evaluateAll((all) =>
    all.map((link) => new URL(link.getAttribute('href') ?? '', location.href).pathname),
  )

const focusIsIn = (box: Locator) => box.evaluate((element) => element.contains(document.activeElement))

test('40 Products and Settings are open at first, and each closes over its own links', async ({
  page,
  visit,
  seeds,
}) => {
  await visit('/pods', { as: await seeds.hobby1() })
  const links = sidebar(page).getByRole('link')
  await expect(links).toHaveCount(8)
  for (const [name, others] of [
    ['Products', settings],
    ['Settings', products],
  ] as const) {
    const group = sidebar(page).getByRole('button', { name, exact: true })
    await expect(group).toHaveAttribute('aria-expanded', 'true')
    await group.click()
    await expect(group).toHaveAttribute('aria-expanded', 'false')
    expect(await targets(links)).toEqual(others)
    await group.press('Enter')
    await expect(group).toHaveAttribute('aria-expanded', 'true')
    expect(await targets(links)).toEqual([...products, ...settings])
  }
})

test('41 Products leads to its five pages, two of them coming soon', async ({ page, visit, seeds }) => {
  await visit('/pods', { as: await seeds.hobby1() })
  const group = sidebar(page).getByRole('list').first()
  await expect(group.getByRole('link')).toHaveCount(5)
  expect(await targets(group.getByRole('link'))).toEqual(products)
  await expect(group.getByText('COMING SOON', { exact: true })).toHaveCount(2)
  for (const [name, path] of [
    ['Create New Instance', '/create'],
    ['Pods', '/pods'],
    ['Storage', '/storage'],
    ['Batch Inference COMING SOON', '/batch-inference'],
    ['Multi Node Clusters COMING SOON', '/multi-node-clusters'],
  ] as const) {
    const link = group.getByRole('link', { name, exact: true })
    await link.click()
    await expect(page).toHaveURL(new RegExp(`${path}(\\?|$)`))
    await expect(link).toHaveAttribute('aria-current', 'page')
    await expect(group.locator('[aria-current=page]')).toHaveCount(1)
  }
})

test('42 Settings leads to SSH keys, the team and billing', async ({ page, visit, seeds }) => {
  await visit('/pods', { as: await seeds.hobby1() })
  const group = sidebar(page).getByRole('list').last()
  await expect(group.getByRole('link')).toHaveCount(3)
  expect(await targets(group.getByRole('link'))).toEqual(settings)
  for (const [name, path] of [
    ['SSH Keys', '/ssh-keys'],
    ['Manage Team', '/teams'],
    ['Billing & Wallet', '/billing'],
  ] as const) {
    await group.getByRole('link', { name, exact: true }).click()
    await expect(page).toHaveURL(new RegExp(`${path}$`))
  }
})

test('43 the sidebar stands beside the page from 1024 px on, below there is a top bar', async ({
  page,
  visit,
  seeds,
}) => {
  await visit('/pods', { as: await seeds.hobby1() })
  for (const size of [widths.D, { width: 1024, height: 768 }]) {
    await page.setViewportSize(size)
    await expect(sidebar(page)).toBeVisible()
    await expect(menuButton(page)).toBeHidden()
    await expect(page.getByRole('banner')).toBeHidden()
    expect((await page.getByRole('complementary').first().boundingBox())?.width).toBe(248)
    await expectNoOverflow(page)
  }
  for (const size of narrow) {
    await page.setViewportSize(size)
    await expect(menuButton(page)).toBeVisible()
    await expect(page.getByRole('banner').getByRole('link', { name: /^Wallet \$/ })).toBeVisible()
    await expect(sidebar(page)).toBeHidden()
    await expectNoOverflow(page)
  }
})

test('44 the menu button opens the sidebar, which keeps the focus until it closes', async ({
  page,
  visit,
  seeds,
}) => {
  await visit('/pods', { as: await seeds.hobby1(), width: 'M' })
  for (const size of narrow) {
    await page.setViewportSize(size)
    await page.goto('/pods')
    await menuButton(page).click()
    await expect(drawer(page)).toBeVisible()
    await expect(sidebar(page)).toBeVisible()
    await expect(drawer(page)).toHaveCSS('width', '300px')

    // The focus could only leave at the two ends.
    const stops = drawer(page).locator('a[href], button:enabled')
    for (const [end, key] of [
      [stops.last(), 'Tab'],
      [stops.first(), 'Shift+Tab'],
    ] as const) {
      await end.focus()
      for (let i = 0; i < 3; i++) {
        await page.keyboard.press(key)
        expect(await focusIsIn(drawer(page)), `${key} ${i + 1}`).toBe(true)
      }
    }
    await page.keyboard.press('Escape')
    await expect(drawer(page)).toBeHidden()
    await expect(menuButton(page)).toBeFocused()

    await page.keyboard.press('Enter')
    await expect(drawer(page)).toBeVisible()
    await page.mouse.click(size.width - 20, 400)
    await expect(drawer(page)).toBeHidden()
    await expect(menuButton(page)).toBeFocused()

    await menuButton(page).click()
    await drawer(page).getByRole('link', { name: 'Storage' }).click()
    await expect(page).toHaveURL(/\/storage$/)
    await expect(drawer(page)).toBeHidden()
    await expect(page.getByRole('heading', { level: 1, name: 'Storage' })).toBeFocused()

    // The page that is open already: nothing to go to, the drawer closes all the same.
    await menuButton(page).click()
    await drawer(page).getByRole('link', { name: 'Storage' }).click()
    await expect(drawer(page)).toBeHidden()
    await expect(menuButton(page)).toBeFocused()
  }
})

test('whatever leads out of the drawer closes it, and Esc closes its menu first', async ({
  page,
  visit,
  seeds,
}) => {
  const person = await seeds.hobby()
  await visit('/pods', { as: person, width: 'M' })
  for (const [leave, path] of [
    [() => drawer(page).getByRole('button', { name: '+ Add Funds' }).click(), /\/billing$/],
    [() => drawer(page).getByRole('link', { name: 'Homeport' }).click(), /\/home$/],
  ] as const) {
    await menuButton(page).click()
    await leave()
    await expect(page).toHaveURL(path)
    await expect(drawer(page)).toBeHidden()
  }
  await visit('/pods', { as: person, width: 'M' })
  await menuButton(page).click()
  await drawer(page)
    .getByRole('button', { name: /^Team / })
    .click()
  await expect(drawer(page).getByRole('menu')).toBeVisible()
  await page.keyboard.press('Escape')
  await expect(drawer(page).getByRole('menu')).toBeHidden()
  await expect(drawer(page)).toBeVisible()
  await page.keyboard.press('Enter')
  await drawer(page).getByRole('menuitem', { name: 'Create new team' }).click()
  await expect(page).toHaveURL(/\/create-team$/)
  await expect(drawer(page)).toBeHidden()
})

test('the open drawer and the open team menu are accessible', async ({ page, visit, seeds }) => {
  await visit('/ssh-keys', { as: await seeds.hobby(), width: 'M' })
  await menuButton(page).click()
  await drawer(page)
    .getByRole('button', { name: /^Team / })
    .click()
  await expect(page.getByRole('menu')).toBeVisible()
  await expectAccessible(page)
  await page.setViewportSize(widths.D)
  await page.getByRole('button', { name: /^Team / }).click()
  await expect(page.getByRole('menu')).toBeVisible()
  await expectAccessible(page)
})
