// What the lists of volumes and SSH keys have in common when a row is deleted.
import { expect, type Page } from '@playwright/test'
import { hold, refuse } from './answers'

/**
 * Deletes the second of the rows first, second and third, which the server refuses once with a detail and once
 * without: the row goes when that is confirmed, and comes back to its place from what the page knew.
 */
export async function expectRestored(
  page: Page,
  list: '/volumes' | '/ssh-keys',
  messages: { readonly detailed: string; readonly bare: string },
): Promise<void> {
  const names = ['first', 'second', 'third']
  const shown = page.locator('tbody td:first-child') // a modal hides the table's roles
  await expect(shown).toContainText(names)
  await expect(shown).toHaveCount(3)
  const read = await hold(page, 'get', list)
  for (const [detail, text] of [
    ['in use', messages.detailed],
    [undefined, messages.bare],
  ] as const) {
    await refuse(page, 'delete', `${list}/{id}`, 409, detail)
    const release = await hold(page, 'delete', `${list}/{id}`)
    const row = page.getByRole('row', { name: /^second\b/ })
    await row.getByRole('button', { name: 'Delete' }).click()
    await expect(shown).toHaveCount(3) // nothing goes before it is confirmed
    await page.getByRole('alertdialog').getByRole('button', { name: 'Delete' }).click()
    await expect(shown).toContainText(['first', 'third'])
    await expect(shown).toHaveCount(2)
    release()
    await expect(page.getByRole('alert')).toHaveText(text)
    await expect(shown).toContainText(names)
    await expect(shown).toHaveCount(3)
    await page.getByRole('alert').getByRole('button', { name: 'Close' }).click()
  }
  read()
}
