// Section A of the checks: the keyboard and the focus.
import { expect, test } from './fixture'
import { memberRoutes, open, Traffic, visitorRoutes } from './routes'

test('18 the first stop of the Tab key is the skip link, which leads to the content', async ({
  page,
  visit,
  seeds,
}) => {
  for (const [path, as] of [
    ['/', undefined],
    ['/pods', undefined],
    ['/pods', await seeds.hobby1()],
  ] as const) {
    await visit(path, as ? { as } : {})
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
    await page.keyboard.press('Tab')
    const skip = page.getByRole('link', { name: 'Skip to content' })
    await expect(skip, path).toBeFocused()
    await expect(skip).toBeInViewport()
    await page.keyboard.press('Enter')
    await expect(page.getByRole('main'), path).toBeFocused()
    await page.keyboard.press('Tab')
    await expect(page.getByRole('main').locator(':focus'), path).toHaveCount(1)
  }
})

test('18 the focus stays where it is when the scripts of the landing page come late', async ({ page }) => {
  let come = () => {}
  const late = new Promise<void>((resolve) => {
    come = resolve
  })
  await page.route(/\/assets\/.*\.js$/, async (route) => {
    await late
    await route.continue()
  })
  await page.goto('/', { waitUntil: 'commit' })
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
  await page.keyboard.press('Tab')
  await page.keyboard.press('Tab')
  const link = page.getByRole('link', { name: 'Login / Signup' }).first()
  await expect(link).toBeFocused()
  await link.evaluate((element) => element.setAttribute('data-prerendered', ''))
  come()
  await expect(page.locator('[data-prerendered]')).toHaveCount(0)
  await expect(link).toBeFocused()
  await page.keyboard.press('Tab')
  await expect(page.getByRole('link', { name: 'Go to Dashboard' })).toBeFocused()
})

test('19 following a link of the sidebar moves the focus to the new page', async ({ page, visit, seeds }) => {
  await visit('/pods', { as: await seeds.hobby1(), width: 'D' })
  const sidebar = page.getByRole('navigation', { name: 'Main' })
  await expect(sidebar.getByRole('link', { name: 'Pods' })).toHaveAttribute('aria-current', 'page')
  await sidebar.getByRole('link', { name: 'Storage' }).click()
  await expect(page.getByRole('heading', { level: 1, name: 'Storage' })).toBeFocused()
  await expect(sidebar.getByRole('link', { name: 'Storage' })).toHaveAttribute('aria-current', 'page')
  await expect(sidebar.locator('[aria-current=page]')).toHaveCount(1)
  await sidebar.getByRole('link', { name: 'SSH Keys' }).press('Enter')
  await expect(page.getByRole('heading', { level: 1, name: 'SSH Keys' })).toBeFocused()

  await page.setViewportSize({ width: 390, height: 844 })
  await page.getByRole('button', { name: 'Open menu' }).click()
  await page.getByRole('dialog').getByRole('link', { name: 'Manage Team' }).click()
  await expect(page.getByRole('dialog')).toHaveCount(0)
  await expect(page.getByRole('heading', { level: 1, name: 'Manage Team' })).toBeFocused()
})

test('20 whatever the Tab key stops at shows its focus', async ({ page, visit, seeds }) => {
  test.setTimeout(240_000)
  const traffic = new Traffic(page)
  const faults: string[] = []
  for (const round of [
    { name: 'V', routes: visitorRoutes },
    { name: 'P', routes: memberRoutes, as: (await seeds.pro()).admin },
  ]) {
    await visit('/robots.txt', round)
    for (const path of round.routes) {
      await open(page, traffic, path)
      await page.keyboard.press('Tab') // from now on the page takes it that the keyboard is used
      const { stops, dark } = await page.evaluate(focusOfEveryStop)
      expect(stops, path).toBeGreaterThan(3)
      for (const name of dark) faults.push(`${round.name} ${path}: ${name}`)
    }
  }
  expect(faults).toEqual([])

  // What was found by script holds for the key itself.
  await page.goto('/storage')
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
  await page.keyboard.press('Tab')
  await page.keyboard.press('Tab')
  const width = await page.locator(':focus').evaluate((stop) => getComputedStyle(stop).outlineWidth)
  expect(Number.parseFloat(width)).toBeGreaterThanOrEqual(2)
})

/** Focuses everything that the Tab key stops at, as that key would, and names what does not show it. */
function focusOfEveryStop(): { stops: number; dark: string[] } {
  const dark: string[] = []
  const all = document.querySelectorAll<HTMLElement>('a[href],button,input,select,textarea,[tabindex]')
  const stops = [...all].filter(
    (stop) => stop.tabIndex >= 0 && !stop.matches(':disabled') && stop.getClientRects().length > 0,
  )
  for (const stop of stops) {
    stop.focus()
    // A list of tabs hands the focus on to one of them.
    const at = document.activeElement
    if (!(at instanceof HTMLElement)) continue
    // A choice that is drawn by its label shows its focus there.
    const holders = [at, at.closest('label')].filter((holder) => holder !== null)
    const shown = holders.some((holder) => {
      const { outlineStyle, outlineWidth, outlineColor } = getComputedStyle(holder)
      const box = holder.getBoundingClientRect()
      const drawn = outlineStyle !== 'none' && Number.parseFloat(outlineWidth) >= 2
      return drawn && !/rgba\(.*, 0\)|transparent/.test(outlineColor) && box.width >= 8 && box.height >= 8
    })
    if (!shown) dark.push(stop.getAttribute('aria-label') ?? stop.outerHTML.slice(0, 120))
  }
  return { stops: stops.length, dark }
}
