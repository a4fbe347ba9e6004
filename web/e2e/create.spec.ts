// Section F of the checks: /create, what is offered.
import type { Page } from '@playwright/test'
import { answer, Requests, refuse } from './answers'
import { anOffer } from './bodies'
import type { Offer } from './client'
import { expect, test } from './fixture'

/** The values of a group of radio buttons, in their order. */
async function values(page: Page, name: string): Promise<(string | null)[]> {
  const radios = page.locator(`input[type=radio][name=${name}]`)
  await expect(radios.first()).toBeAttached()
  return radios.evaluateAll((all) => all.map((radio) => radio.getAttribute('value')))
}

async function offered(page: Page, offers: Record<string, Offer[]>): Promise<void> {
  await answer(page, 'get', '/resources', offers)
}

const summary = (page: Page) => page.getByRole('complementary', { name: 'Summary' })

test('98 the title is Create New Instance', async ({ page, visit }) => {
  await visit('/create')
  await expect(page.getByRole('heading', { level: 1, name: 'Create New Instance' })).toBeVisible()
})

test('99 H100 comes first, A100 second, the rest by their lowest price per GPU', async ({ page, visit }) => {
  await offered(page, {
    RTX_A6000: [
      anOffer({ gpuType: 'RTX_A6000', gpuCount: 1, price: 0.9 }),
      anOffer({ gpuType: 'RTX_A6000', gpuCount: 8, price: 3.2 }),
    ],
    L40S: [anOffer({ gpuType: 'L40S', gpuCount: 1, price: 0.5 })],
    A100_80GB: [anOffer({ gpuType: 'A100_80GB', price: 1.2 })],
    H100_80GB: [anOffer({ price: 9 })],
    RTX_4090: [anOffer({ gpuType: 'RTX_4090', gpuCount: 2, price: 0.7 })],
  })
  await visit('/create')
  expect(await values(page, 'gpu-type')).toEqual(['H100_80GB', 'A100_80GB', 'RTX_4090', 'RTX_A6000', 'L40S'])
})

test('100 without any H100 offer A100 is first', async ({ page, visit }) => {
  await offered(page, {
    L40S: [anOffer({ gpuType: 'L40S', price: 0.5 })],
    A100_80GB: [anOffer({ gpuType: 'A100_80GB', price: 1.2 })],
  })
  await visit('/create')
  expect(await values(page, 'gpu-type')).toEqual(['A100_80GB', 'L40S'])
})

test('101 counts 1 to 8 are offered, those without an offer are disabled', async ({ page, visit }) => {
  await offered(page, { H100_80GB: [1, 2, 8].map((gpuCount) => anOffer({ gpuCount, price: 2 * gpuCount })) })
  await visit('/create')
  for (let count = 1; count <= 8; count++) {
    const radio = page.getByRole('radio', { name: count === 1 ? '1 GPU' : `${count} GPUs`, exact: true })
    if ([1, 2, 8].includes(count)) await expect(radio).toBeEnabled()
    else await expect(radio).toBeDisabled()
  }
  await expect(page.locator('input[name=gpu-count]')).toHaveCount(8)
})

test('102 the offer for type and count is the one with the lowest price per GPU', async ({ page, visit }) => {
  await offered(page, {
    H100_80GB: [
      anOffer({ gpuCount: 2, price: 5.2, provider: 'dear' }),
      anOffer({ gpuCount: 2, price: 4.98, provider: 'cheap' }),
      anOffer({ gpuCount: 1, price: 2.6, provider: 'single' }),
    ],
  })
  await visit('/create?count=2')
  await expect(summary(page)).toContainText('Cheap')
  await expect(summary(page)).toContainText('$4.980/hr')
  await expect(summary(page)).toContainText('$2.490 per GPU')
})

test('a spot offer says what that means', async ({ page, visit }) => {
  await offered(page, { H100_80GB: [anOffer({ isSpot: true }), anOffer({ gpuCount: 2, price: 6 })] })
  await visit('/create')
  await expect(summary(page)).toContainText('Its cloud may end a spot pod at any time.')
  await visit('/create?count=2')
  await expect(summary(page)).toContainText('$3.000 per GPU')
  await expect(summary(page)).not.toContainText('spot')
})

const wide = { gpuCount: 2, gpuMemory: 160, memory: 100, vcpu: 16, socket: 'PCIe', country: 'DE' }
const filtered = {
  H100_80GB: [
    anOffer({ ...wide, price: 4, provider: 'cheap' }),
    anOffer({
      ...wide,
      gpuMemory: 188,
      memory: 400,
      vcpu: 64,
      socket: 'SXM5',
      country: 'US',
      price: 6,
      provider: 'large',
    }),
  ],
}
const filters: { name: string; choose?: string; fill?: string }[] = [
  { name: 'Socket', choose: 'SXM5' },
  { name: 'Country', choose: 'US' },
  { name: 'Min VRAM (GB)', fill: '161' },
  { name: 'Min RAM (GB)', fill: '101' },
  { name: 'Min vCPU', fill: '17' },
]
for (const filter of filters) {
  test(`103 the filter ${filter.name} changes the chosen offer`, async ({ page, visit }) => {
    await offered(page, filtered)
    await visit('/create?count=2')
    await expect(summary(page)).toContainText('Cheap')
    const field = page.getByLabel(filter.name)
    if (filter.choose) await field.selectOption(filter.choose)
    else await field.fill(filter.fill ?? '')
    await expect(summary(page)).toContainText('Large')
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await expect(summary(page)).toContainText('Cheap')
  })
}

test('103 the filter Max price changes the chosen offer', async ({ page, visit }) => {
  await offered(page, {
    H100_80GB: [
      anOffer({ gpuCount: 1, price: 3, provider: 'one' }),
      anOffer({ gpuCount: 4, price: 8, provider: 'four' }),
    ],
  })
  await visit('/create?count=4')
  await expect(summary(page)).toContainText('Four')
  await page.getByLabel('Max price ($/hr)').fill('7.99')
  await expect(summary(page)).toContainText('One')
})

test('105 the bars of the specification have the maxima and the true numbers', async ({ page, visit }) => {
  await offered(page, {
    H100_80GB: [anOffer({ gpuCount: 8, gpuMemory: 640, memory: 1500, vcpu: 192, price: 20 })],
  })
  await visit('/create')
  const maxima = { 'VRAM per GPU': 90, VRAM: 300, RAM: 2000, vCPU: 256, GPUs: 8 }
  const now = { 'VRAM per GPU': 80, VRAM: 300, RAM: 1500, vCPU: 192, GPUs: 8 }
  for (const [name, most] of Object.entries(maxima)) {
    const bar = page.getByRole('meter', { name, exact: true })
    await expect(bar).toHaveAttribute('aria-valuemax', String(most))
    await expect(bar).toHaveAttribute('aria-valuenow', String(now[name as keyof typeof now]))
  }
  const vram = page.getByRole('meter', { name: 'VRAM', exact: true })
  await expect(vram).toHaveAttribute('aria-valuetext', '640 GB')
  await expect(page.getByText('640 GB', { exact: true })).toBeVisible()
  const [outer, inner] = await vram.evaluate((bar) => [
    bar.getBoundingClientRect().width,
    bar.firstElementChild?.getBoundingClientRect().width,
  ])
  expect(inner).toBe(outer)
})

test('106 a bar changes its colour above 25, 50 and 75 %', async ({ page, visit }) => {
  const levels: [number, string][] = [
    [500, '1'],
    [520, '2'],
    [1020, '3'],
    [1520, '4'],
  ]
  let memory = 0
  await answer(page, 'get', '/resources', () => ({ H100_80GB: [anOffer({ memory })] }))
  const colours = new Set<string>()
  for (const [gb, level] of levels) {
    memory = gb
    await visit('/create')
    const bar = page.getByRole('meter', { name: 'RAM', exact: true })
    await expect(bar).toHaveAttribute('data-level', level)
    colours.add(await bar.locator('div').evaluate((fill) => getComputedStyle(fill).backgroundColor))
  }
  expect(colours.size).toBe(4)
})

test('116 a visitor may choose everything, and sign in to create', async ({ page, visit }) => {
  const requests = new Requests(page)
  await visit('/create')
  await page.getByRole('radio', { name: /A100 80GB/ }).check({ force: true })
  await expect(summary(page)).toContainText('A100 80GB')
  await page.getByLabel('Country').selectOption({ index: 1 })
  const create = page.getByRole('button', { name: 'Create Instance' })
  await expect(create).toBeDisabled()
  await expect(create).toHaveAttribute('title', 'Sign in to create pods')
  const [resources] = requests.to('get', '/resources')
  expect(new URL(resources?.url() ?? '').search).toBe('')
})

test('117 resources that cannot be read', async ({ page, visit }) => {
  await refuse(page, 'get', '/resources', 500)
  await visit('/create')
  await expect(page.getByText('Failed to fetch resources')).toBeVisible()
})

test('120 arrow keys move within the groups of GPU types and counts', async ({ page, visit }) => {
  await offered(page, {
    H100_80GB: [1, 2, 8].map((gpuCount) => anOffer({ gpuCount, price: 2 * gpuCount })),
    A100_80GB: [1, 2, 8].map((gpuCount) => anOffer({ gpuType: 'A100_80GB', gpuCount, price: gpuCount })),
  })
  await visit('/create')
  await page.getByRole('radio', { name: /H100 80GB/ }).focus()
  await page.keyboard.press('ArrowRight')
  await expect(page.getByRole('radio', { name: /A100 80GB/ })).toBeChecked()
  await expect(page.getByRole('radio', { name: /A100 80GB/ })).toBeFocused()
  await page.getByRole('radio', { name: '1 GPU', exact: true }).focus()
  await page.keyboard.press('ArrowDown')
  await expect(page.getByRole('radio', { name: '2 GPUs' })).toBeChecked()
  await page.keyboard.press('ArrowRight')
  await expect(page.getByRole('radio', { name: '8 GPUs' })).toBeChecked()
  await expect(page.getByRole('radio', { name: '8 GPUs' })).toBeFocused()
})
