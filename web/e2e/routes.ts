// Every page of the product, and a way to look at them one after the other.
import type { Page } from '@playwright/test'
import { expect } from './fixture'

/** The pages inside the shell that a visitor may open (item 8). */
export const openRoutes = [
  '/pods',
  '/create',
  '/storage',
  '/ssh-keys',
  '/teams',
  '/billing',
  '/create-team',
  '/batch-inference',
  '/multi-node-clusters',
] as const

/** Where somebody signed in can be. */
export const memberRoutes = ['/home', ...openRoutes] as const
/** Where an operator can be, and nobody else. */
export const operatorRoutes = ['/operator'] as const
/** Where a visitor can be. */
export const visitorRoutes = ['/', '/auth', ...memberRoutes] as const

export const readOnly =
  "You're currently viewing this page in read-only mode. Create an account to create and manage resources."

/** Follows the requests of a page, to know when it has all it asked for. */
export class Traffic {
  private under = 0
  private last = Date.now()

  constructor(page: Page) {
    const step = (by: number) => () => {
      this.under += by
      this.last = Date.now()
    }
    page.on('request', step(1))
    page.on('requestfinished', step(-1))
    page.on('requestfailed', step(-1))
  }

  /** Resolves when nothing was asked for a little longer than the page delays its less urgent lists. */
  async quiet(): Promise<void> {
    await expect
      .poll(() => this.under <= 0 && Date.now() - this.last > 160, { intervals: [20], timeout: 30_000 })
      .toBe(true)
  }
}

/** Goes to another page as a link would, without loading the document anew. */
export async function follow(page: Page, path: string): Promise<void> {
  // The router watches pushState, once the page before is drawn.
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
  await page.evaluate((to) => history.pushState({}, '', to), path)
  await expect(page).toHaveURL((url) => url.pathname === path)
}

/** Opens a page and waits until it has drawn what it asked for. */
export async function open(page: Page, traffic: Traffic, path: string): Promise<void> {
  await page.goto(path)
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
  const skeletons = page.locator('main div.animate-beat.bg-ink-2').filter({ visible: true })
  await expect(skeletons).toHaveCount(0)
  await traffic.quiet()
}
