// Section F of the checks: /create, what it takes and what happens then.
import type { Page, Request } from '@playwright/test'
import { answer, hold, Requests, refuse } from './answers'
import { aBalance, ago, aKey, anOffer, aPod, aTransaction, aVolume, id } from './bodies'
import type { Client, Pod } from './client'
import { expect, test } from './fixture'
import { expectNoOverflow } from './looks'
import { publicKeys } from './seeds'

const createButton = (page: Page) => page.getByRole('button', { name: 'Create Instance' })
const tempCard = (page: Page) => page.locator('h2[id^="pod-temp-"]')

/** Everything that creating needs, without the server. */
async function furnished(page: Page): Promise<void> {
  await answer(page, 'get', '/volumes', [aVolume()])
  await answer(page, 'get', '/ssh-keys', [aKey()])
  await answer(page, 'get', '/wallet/balance', aBalance({ balance: 10 }))
}

test('104 filters that leave no offer: the button says so, nothing is sent', async ({
  page,
  visit,
  seeds,
}) => {
  await furnished(page)
  const requests = new Requests(page)
  await visit('/create', { as: await seeds.hobby1() })
  await page.getByLabel('Max price ($/hr)').fill('0.01')
  await expect(page.getByText('Please select a valid GPU configuration')).toBeHidden()
  await createButton(page).click()
  await expect(page.getByText('Please select a valid GPU configuration')).toBeVisible()
  await expect(page).toHaveURL(/\/create/)
  expect(requests.to('post', '/pods')).toEqual([])
})

test('107 only free volumes can be chosen, the newest of them and the newest key are', async ({
  page,
  visit,
  seeds,
}) => {
  await answer(page, 'get', '/volumes', [
    aVolume({ id: id('a'), name: 'older', created_at: ago(900) }),
    aVolume({ id: id('b'), name: 'newest free', created_at: ago(600) }),
    aVolume({ id: id('c'), name: 'taken', created_at: ago(60), currently_used: true }),
  ])
  await answer(page, 'get', '/ssh-keys', [
    aKey({ id: id('d'), name: 'desk', created_at: ago(900) }),
    aKey({ id: id('e'), name: 'newest key', created_at: ago(60) }),
  ])
  await visit('/create', { as: await seeds.hobby1() })
  const volumes = page.getByLabel('Volume', { exact: true })
  await expect(volumes).toHaveValue(id('b'))
  await expect(volumes.locator('option')).toHaveText([
    'Choose a volume',
    'newest free (123 GB)',
    'older (123 GB)',
  ])
  await expect(page.getByLabel('SSH key')).toHaveValue(id('e'))
})

/** Somebody with a volume, a key and 10 USD, for a test that spends them. */
async function customer(make: () => Promise<Client>): Promise<Client> {
  const client = await make()
  await client.pay(10)
  await client.post('/volumes', { name: 'data', team_id: client.teamId })
  await client.post('/ssh-keys', { name: 'laptop', public_key: publicKeys[0], team_id: client.teamId })
  return client
}

test('108 a click orders the pod with all 20 fields and shows it at once', async ({ page, visit, seeds }) => {
  const client = await customer(() => seeds.newcomer())
  const release = await hold(page, 'post', '/pods')
  await visit('/create?gpu=A100_80GB', { as: client })
  await expect(createButton(page)).toBeEnabled()
  const posted = page.waitForRequest((r) => r.method() === 'POST' && r.url().endsWith('/api/pods'))
  await createButton(page).click()
  await expect(page).toHaveURL(/\/pods$/)
  await expect(tempCard(page)).toHaveText('1x A100 80GB')
  const body = (await posted).postDataJSON()
  expect(Object.keys(body).sort()).toEqual([
    'cloud_id',
    'country',
    'currency',
    'data_center_id',
    'default_disk_size',
    'disk_price',
    'gpu_count',
    'gpu_memory',
    'gpu_type',
    'image',
    'is_spot',
    'memory',
    'price',
    'provider',
    'security',
    'socket',
    'ssh_key_id',
    'team_id',
    'vcpu',
    'volume_id',
  ])
  const [offer] = (await client.offers('A100_80GB'))
    .filter((each) => each.gpuCount === 1)
    .sort((a, b) => a.price - b.price)
  expect(body).toMatchObject({ cloud_id: offer?.cloudId, price: offer?.price, disk_price: offer?.diskPrice })
  release()
  await expect(page.getByRole('article').getByText('Ready')).toBeVisible({ timeout: 20_000 })
  await expect(page.getByRole('article')).toHaveCount(1)
  for (const pod of await client.get<{ id: string }[]>(`/pods?team_id=${client.teamId}`)) {
    await client.delete(`/pods/${pod.id}?team_id=${client.teamId}`)
    await client.ended(pod.id)
  }
})

test('what a new pod spends is in the wallet box soon, and its charges are in the history', async ({
  page,
  visit,
  seeds,
}) => {
  await furnished(page)
  const as = await seeds.hobby1()
  let pods: Pod[] = []
  const spent = aTransaction({
    transaction_type: 'charge',
    resource_type: 'pod-runtime',
    resource_id: id('9f3c1a77'),
    amount: -1.29,
  })
  await answer(page, 'get', '/pods', () => pods)
  await answer(page, 'post', '/pods', () => {
    const pod = aPod({ team_id: as.teamId, price: 2.49 })
    pods = [pod]
    return pod
  })
  await answer(page, 'get', '/wallet/balance', () =>
    aBalance({ balance: 10, spending_per_hour: pods.length * 2.49 }),
  )
  await answer(page, 'get', '/wallet/transactions', () => (pods.length > 0 ? [spent] : []))
  await visit('/billing?tab=pods', { as })
  await expect(page.getByText('No pod transactions yet')).toBeVisible()
  await page.getByRole('link', { name: 'Create New Instance' }).click()
  await createButton(page).click()
  await expect(page.getByText('Spending $2.490/hr')).toBeVisible()
  await page.getByRole('link', { name: 'Billing & Wallet' }).click()
  await page.getByRole('tab', { name: 'Pod Transactions' }).click()
  await expect(page.getByRole('cell', { name: '-$1.29' })).toBeVisible()
})

test('109 the placeholder outlives a refresh of the list and becomes the pod', async ({
  page,
  visit,
  seeds,
}) => {
  const client = await customer(() => seeds.newcomer())
  const release = await hold(page, 'post', '/pods')
  await page.clock.install()
  await visit('/create?gpu=A100_80GB', { as: client })
  await createButton(page).click()
  await expect(tempCard(page)).toBeVisible()
  const read = page.waitForResponse((r) => r.url().includes('/api/pods?'))
  await page.clock.runFor(30_000)
  expect(await (await read).json()).toEqual([])
  await expect(tempCard(page)).toBeVisible()
  const made = page.waitForResponse((r) => r.request().method() === 'POST' && r.url().endsWith('/api/pods'))
  release()
  const pod = await (await made).json()
  await expect(page.locator(`#pod-${pod.id}`)).toBeVisible()
  await expect(tempCard(page)).toBeHidden()
  await expect(page.getByRole('article')).toHaveCount(1)
  await client.delete(`/pods/${pod.id}?team_id=${client.teamId}`)
  await client.ended(pod.id)
})

test('110 an order that fails is told with its detail and leaves the list', async ({
  page,
  visit,
  seeds,
}) => {
  await furnished(page)
  const client = await seeds.hobby1()
  for (const [detail, text] of [
    ['The offer costs more now.', 'The offer costs more now.'],
    [undefined, 'Failed to create pod'],
  ] as const) {
    await refuse(page, 'post', '/pods', 409, detail)
    await visit('/create', { as: client })
    await createButton(page).click()
    await expect(page.getByRole('alert').getByText(text, { exact: true })).toBeVisible()
    await expect(page).toHaveURL(/\/pods$/)
    await expect(tempCard(page)).toBeHidden()
  }
})

test('111 without a free volume', async ({ page, visit, seeds }) => {
  await furnished(page)
  await answer(page, 'get', '/volumes', [aVolume({ currently_used: true })])
  await visit('/create', { as: await seeds.hobby1() })
  await expect(page.getByText('No Storage Volumes Available')).toBeVisible()
  await expect(createButton(page)).toBeDisabled()
  await expect(page.getByLabel('Volume', { exact: true })).toHaveAccessibleDescription(
    'All volumes are in use. Deleting a pod frees its volume.',
  )
})

test('112 free volumes, but none is chosen', async ({ page, visit, seeds }) => {
  await furnished(page)
  await visit('/create', { as: await seeds.hobby1() })
  await expect(createButton(page)).toBeEnabled()
  await page.getByLabel('Volume', { exact: true }).selectOption('Choose a volume')
  await expect(page.getByText('Missing Storage Volume')).toBeVisible()
  await expect(createButton(page)).toBeDisabled()
})

test('113 without a key', async ({ page, visit, seeds }) => {
  await furnished(page)
  await answer(page, 'get', '/ssh-keys', [])
  await visit('/create', { as: await seeds.hobby1() })
  await expect(page.getByText('No SSH Keys Available')).toBeVisible()
  await expect(createButton(page)).toBeDisabled()
})

test('114 keys, but none is chosen', async ({ page, visit, seeds }) => {
  await furnished(page)
  await visit('/create', { as: await seeds.hobby1() })
  await expect(createButton(page)).toBeEnabled()
  await page.getByLabel('SSH key').selectOption('Choose an SSH key')
  await expect(page.getByText('Missing Public SSH Key')).toBeVisible()
  await expect(createButton(page)).toBeDisabled()
})

test('115 a balance below one cent', async ({ page, visit, seeds }) => {
  await furnished(page)
  const client = await seeds.hobby1()
  let balance = 0.01
  await answer(page, 'get', '/wallet/balance', () => aBalance({ balance }))
  await visit('/create', { as: client })
  await expect(createButton(page)).toBeEnabled()
  await expect(page.getByText('Insufficient Funds')).toBeHidden()
  balance = 0.009
  await page.getByRole('button', { name: 'Refresh wallet data' }).click()
  await expect(page.getByText('Insufficient Funds')).toBeVisible()
  await expect(createButton(page)).toBeDisabled()
  await page.getByRole('link', { name: 'Add funds to your wallet' }).click()
  await expect(page).toHaveURL(/\/billing$/)
})

test('what is missing leads to where it is made, on a phone above the button too', async ({
  page,
  visit,
  seeds,
}) => {
  const as = await seeds.hobby()
  for (const width of ['D', 'M'] as const) {
    await visit('/create', { as, width })
    const needed = page.getByRole('list', { name: 'Before you can create this instance' })
    await expect(needed.getByRole('link')).toHaveText([
      'New Storage Volume',
      'Create SSH Key',
      'Add funds to your wallet',
    ])
    const ways = await needed
      .getByRole('link')
      .evaluateAll((links) => links.map((link) => link.getAttribute('href')))
    expect(ways).toEqual(['/storage', '/ssh-keys', '/billing'])
    await expect(page.getByText(/at this rate/), 'an empty wallet lasts for nothing').toHaveCount(0)
    await expectNoOverflow(page)
  }
  const bar = createButton(page).locator('../..')
  await expect(bar.getByText('No Storage Volumes Available')).toBeInViewport()
  await bar.getByRole('link', { name: 'New Storage Volume' }).click()
  await expect(page).toHaveURL(/\/storage$/)
})

/** Opens a page and fails unless the primary lists are asked for first, the others about 100 ms later by the page's clock. */
async function order(page: Page, open: () => Promise<void>, primary: string[], secondary: string[]) {
  const seen = new Set<string>()
  const note = (request: Request) => {
    const path = new URL(request.url()).pathname.replace(/^\/api\//, '')
    seen.add(path.replace(/^teams\/.*\/members$/, 'members'))
  }
  const asked = (names: string[]) => names.filter((name) => seen.has(name))
  page.on('request', note)
  await page.clock.pauseAt(Date.now() + 1000)
  await open()
  await expect
    .poll(
      async () => {
        await page.clock.runFor(1)
        return asked(primary)
      },
      { intervals: [10] },
    )
    .toEqual(primary)
  await page.clock.runFor(50)
  expect(asked(secondary), `${page.url()}: too early`).toEqual([])
  await page.clock.runFor(100)
  await expect.poll(() => asked(secondary)).toEqual(secondary)
  page.off('request', note)
  await page.clock.resume()
}

test('118 /create asks for resources, volumes and keys first, for the rest about 100 ms later', async ({
  page,
  visit,
  seeds,
}) => {
  await page.clock.install()
  const client = await seeds.hobby1()
  const open = () => visit('/create', { as: client })
  await order(page, open, ['resources', 'volumes', 'ssh-keys'], ['pods', 'members'])
})

const lists: Record<string, [string[], string[]]> = {
  '/pods': [['pods'], ['volumes', 'ssh-keys', 'members', 'resources']],
  '/storage': [['volumes'], ['pods', 'ssh-keys', 'members', 'resources']],
  '/ssh-keys': [['ssh-keys'], ['pods', 'volumes', 'members', 'resources']],
  '/teams': [['members'], ['pods', 'volumes', 'ssh-keys', 'resources']],
}
test('118a the other pages ask for their own list first as well', async ({ page, visit, seeds }) => {
  await page.clock.install()
  const client = await seeds.hobby1()
  for (const [path, [primary, secondary]] of Object.entries(lists)) {
    await order(page, () => visit(path, { as: client }), primary, secondary)
  }
})

test('119 everybody sees the prices that the server names for them', async ({ page, visit, seeds }) => {
  await answer(page, 'get', '/resources', (request) => ({
    H100_80GB: [
      anOffer({
        gpuCount: 2,
        listPrice: 5,
        price: new URL(request.url()).searchParams.get('team_id') === pro.id ? 4.2 : 5,
      }),
    ],
  }))
  const pro = await seeds.pro()
  const summary = page.getByRole('complementary', { name: 'Summary' })
  await visit('/create', { as: await seeds.hobby1() })
  await expect(summary).toContainText('$5.000/hr')
  await expect(summary).toContainText('$2.500 per GPU')
  await visit('/create', { as: pro.admin })
  await expect(summary).toContainText('$4.200/hr')
  await expect(summary).toContainText('$2.100 per GPU')
})
