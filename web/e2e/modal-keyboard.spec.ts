// Section M of the checks: everything by keyboard, and on small or enlarged pages.
import AxeBuilder from '@axe-core/playwright'
import type { Page } from '@playwright/test'
import { answer } from './answers'
import { ago, aPod, id } from './bodies'
import type { SSHKey, Volume } from './client'
import { expect, test } from './fixture'
import { tabTo } from './keyboard'
import { expectNoOverflow } from './looks'
import { follow, memberRoutes, Traffic } from './routes'
import { publicKeys } from './seeds'

test('203 Ctrl or Cmd and K open the palette; typing and Enter go to a page', async ({
  page,
  visit,
  seeds,
}) => {
  await visit('/storage', { as: await seeds.hobby1() })
  await expect(page.getByRole('heading', { level: 1, name: 'Storage' })).toBeVisible()
  const palette = page.getByRole('dialog', { name: 'Command palette' })
  await page.keyboard.press('Meta+k')
  await expect(palette).toBeVisible()
  await page.keyboard.press('Escape')
  await expect(palette).toHaveCount(0)
  await expect(page).toHaveURL(/\/storage$/)
  await page.keyboard.press('Control+k')
  await expect(palette.getByRole('combobox')).toBeFocused()
  await page.keyboard.type('bill')
  await page.keyboard.press('Enter')
  await expect(page).toHaveURL(/\/billing$/)
  await expect(palette).toHaveCount(0)
})

test('204 a pod is created, reached and deleted with the keyboard alone', async ({
  page,
  visit,
  seeds,
  context,
}) => {
  test.setTimeout(120_000)
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  const admin = await seeds.newcomer()
  const team_id = await seeds.proTeam(admin, 'Keyboard Lab', 1)
  admin.teamId = team_id
  await admin.pay(20)
  for (const name of ['datasets', 'checkpoints']) await admin.post<Volume>('/volumes', { name, team_id })
  for (const public_key of publicKeys) {
    await admin.post<SSHKey>('/ssh-keys', { name: public_key.split(' ')[2], public_key, team_id })
  }
  await visit('/pods', { as: admin })
  const main = page.getByRole('main')
  await expect(main.getByText('No pods yet')).toBeVisible()
  await tabTo(page, main.getByRole('button', { name: 'Create New Instance' }))
  await page.keyboard.press('Enter')
  await expect(page).toHaveURL(/\/create/)

  const type = (name: RegExp) => main.getByRole('radio', { name })
  await tabTo(page, type(/^H100 80GB/))
  await page.keyboard.press('ArrowDown')
  await expect(type(/^A100 80GB/)).toBeChecked()
  const count = (n: string) => main.getByRole('radio', { name: n, exact: true })
  await tabTo(page, count('1 GPU'))
  await page.keyboard.press('ArrowRight')
  await expect(count('1 GPU')).not.toBeChecked()
  await page.keyboard.press('ArrowLeft')
  await expect(count('1 GPU')).toBeChecked()
  for (const [label, chosen] of [
    ['Volume', 'datasets'],
    ['SSH key', 'laptop'],
  ] as const) {
    const select = main.getByRole('combobox', { name: label, exact: true })
    await tabTo(page, select)
    await page.keyboard.type(chosen)
    await expect(select.locator('option:checked')).toHaveText(new RegExp(chosen))
  }
  await tabTo(page, main.getByRole('button', { name: 'Create Instance' }))
  await page.keyboard.press('Enter')
  await expect(page).toHaveURL(/\/pods$/)

  const card = main.getByRole('article', { name: '1x A100 80GB' })
  await expect(card).toHaveAttribute('data-status', 'ready', { timeout: 30_000 })
  await tabTo(page, card.getByRole('button', { name: 'Copy SSH command' }))
  await page.keyboard.press('Space')
  await expect(page.getByText('Command copied to clipboard!')).toBeVisible()
  expect(await page.evaluate(() => navigator.clipboard.readText())).toMatch(/^ssh -p \d+ root@/)
  await tabTo(page, card.getByRole('button', { name: 'Delete' }))
  await page.keyboard.press('Enter')
  const question = page.getByRole('alertdialog', { name: 'Delete Pod' })
  await expect(question.getByRole('button', { name: 'Cancel' })).toBeFocused()
  await tabTo(page, question.getByRole('button', { name: 'Delete' }))
  await page.keyboard.press('Enter')
  await expect(card).toHaveAttribute('data-status', 'deleted', { timeout: 30_000 })
})

test('205 at 200 % zoom and at 320 px nothing is cut off, and every target is large enough', async ({
  page,
  visit,
  seeds,
}) => {
  test.setTimeout(180_000)
  const { admin } = await seeds.pro()
  const pod = (name: string, part: Parameters<typeof aPod>[0]) => aPod({ id: id(name), ...part })
  await answer(page, 'get', '/pods', [
    pod('a', { gpu_count: 8, gpu_type: 'RTX_PRO_6000_BLACKWELL_96GB', price: 119.92 }),
    pod('b', { status: 'mounting', progress: 61, ready_at: null }),
    pod('c', { status: 'deleted', status_reason: 'machine_lost', status_detail: 'Lost.', ended_at: ago(9) }),
  ])
  const traffic = new Traffic(page)
  await visit('/pods', { as: admin })
  for (const path of memberRoutes) {
    await page.setViewportSize({ width: 720, height: 450 })
    await follow(page, path)
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
    await expect(page.locator('main div.animate-beat:visible')).toHaveCount(0)
    await traffic.quiet()
    for (const size of [
      { width: 720, height: 450 },
      { width: 320, height: 640 },
    ]) {
      await page.setViewportSize(size)
      await expectNoOverflow(page)
      expect(await cutOff(page), `${path} at ${size.width} px`).toEqual([])
      const { violations } = await new AxeBuilder({ page }).withRules(['target-size']).analyze()
      expect(
        violations.flatMap((v) => v.nodes.map((n) => n.target.join(' '))),
        `${path} at ${size.width} px`,
      ).toEqual([])
    }
  }
})

/** The texts of the page that reach out of the window sideways. */
async function cutOff(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const found: string[] = []
    for (const element of document.querySelectorAll('main *, header *')) {
      const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent?.trim())
      const box = element.getBoundingClientRect()
      if (!own || box.width <= 1 || getComputedStyle(element).visibility === 'hidden') continue
      if (box.left < 0 || box.right > document.documentElement.clientWidth + 0.5) {
        found.push(element.textContent?.trim().slice(0, 40) ?? '')
      }
    }
    return found
  })
}
