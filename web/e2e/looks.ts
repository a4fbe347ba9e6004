// What every page must be, whatever it shows.
import AxeBuilder from '@axe-core/playwright'
import { expect, type Locator, type Page } from '@playwright/test'

/** Collects what a page should never do: console errors, uncaught errors, requests to strangers. */
export class Watch {
  readonly errors: string[] = []
  readonly strangers: string[] = []

  constructor(page: Page, origin: string) {
    page.on('console', (message) => {
      if (message.type() === 'error') this.errors.push(message.text())
    })
    page.on('pageerror', (error) => this.errors.push(String(error)))
    page.on('request', (request) => {
      const url = new URL(request.url())
      if (url.protocol.startsWith('http') && url.origin !== origin) this.strangers.push(request.url())
    })
  }
}

/** Leaves a mark on the document, which is gone when the page has been loaded anew. Returns the one to look for. */
export async function mark(page: Page): Promise<Locator> {
  await page.evaluate(() => document.body.setAttribute('data-mark', ''))
  return page.locator('body[data-mark]')
}

/** The violations of WCAG 2.2 AA and of axe's best practice on a page, each with where it is. */
export async function accessibilityFaults(page: Page): Promise<string[]> {
  // Halfway down, the fixed top bar covers part of a button, which then counts as too small.
  await page.evaluate(() => scrollTo(0, 0))
  const { violations } = await new AxeBuilder({ page })
    .withTags(['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'])
    // There are no frames: without this every look opens a second page.
    .setLegacyMode(true)
    .analyze()
  return violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.target.join(' ')).join(', ')}`)
}

/** Fails on any violation of WCAG 2.2 AA or of axe's best practice. */
export async function expectAccessible(page: Page): Promise<void> {
  expect(await accessibilityFaults(page)).toEqual([])
}

/** Fails when the page can be scrolled sideways. */
export async function expectNoOverflow(page: Page): Promise<void> {
  const { wide, window } = await page.evaluate(() => ({
    wide: document.documentElement.scrollWidth,
    window: innerWidth,
  }))
  expect(wide, `the page is ${wide} px wide in a window of ${window}`).toBeLessThanOrEqual(window)
}
