// What a reader without a pointer does.
import { expect, type Locator, type Page } from '@playwright/test'

/** Goes on with the Tab key until an element has the focus. */
export async function tabTo(page: Page, target: Locator): Promise<void> {
  await expect(target).toBeVisible()
  for (let i = 0; i < 80; i++) {
    await page.keyboard.press('Tab')
    if (await target.evaluate((element) => element === document.activeElement)) return
  }
  throw new Error(`the Tab key does not come to ${target}`)
}
