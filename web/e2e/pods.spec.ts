// Section E of the checks: /pods.
import { answer, hold, Requests, refuse } from './answers'
import { ago, aKey, aPod, aVolume, id } from './bodies'
import { expect, test, widths } from './fixture'
import { Watch } from './looks'

test('76 the page has its title, its legend and the way to a new pod, also for visitors', async ({
  page,
  visit,
  seeds,
}) => {
  for (const as of [undefined, await seeds.hobby1()]) {
    await visit('/pods', as ? { as } : {})
    await expect(page.getByRole('heading', { level: 1, name: 'Pods', exact: true })).toBeVisible()
    const legend = page.getByRole('list', { name: 'Status legend' })
    await expect(legend.getByRole('listitem')).toHaveText([
      'Booting up',
      'Setting up',
      'Ready',
      'Switching off',
      'Syncing',
    ])
    await page.getByRole('button', { name: 'Create New Instance' }).click()
    await expect(page).toHaveURL(/\/create$/)
  }
})

test('77 cards are sorted newest first', async ({ page, visit, seeds }) => {
  await answer(page, 'get', '/pods', [
    aPod({ id: id('b'), gpu_type: 'MIDDLE', created_at: ago(200) }),
    aPod({ id: id('c'), gpu_type: 'OLDEST', created_at: ago(300) }),
    aPod({ id: id('a'), gpu_type: 'NEWEST', created_at: ago(100) }),
  ])
  await visit('/pods', { as: await seeds.hobby1() })
  await expect(page.getByRole('article').getByRole('heading')).toHaveText([
    '2x NEWEST',
    '2x MIDDLE',
    '2x OLDEST',
  ])
})

test('77a volumes and keys are sorted newest first too', async ({ page, visit, seeds }) => {
  const as = await seeds.hobby1()
  const ages: [string, number][] = [
    ['middle', 200],
    ['oldest', 300],
    ['newest', 100],
  ]
  await answer(
    page,
    'get',
    '/volumes',
    ages.map(([name, age]) => aVolume({ id: id(name), name, created_at: ago(age) })),
  )
  await answer(
    page,
    'get',
    '/ssh-keys',
    ages.map(([name, age]) => aKey({ id: id(name), name, created_at: ago(age) })),
  )
  for (const path of ['/storage', '/ssh-keys']) {
    await visit(path, { as })
    await expect(page.getByRole('row').getByText(/^(newest|middle|oldest)$/)).toHaveText([
      'newest',
      'middle',
      'oldest',
    ])
  }
})

test('78 a card shows its status, its GPUs, its price and its uptime', async ({ page, visit, seeds }) => {
  await answer(page, 'get', '/pods', [aPod({ gpu_count: 2, gpu_type: 'A100_80GB', price: 2.64 })])
  await visit('/pods', { as: await seeds.hobby1() })
  const card = page.getByRole('article', { name: '2x A100 80GB' })
  await expect(card.getByText('Ready', { exact: true })).toBeVisible()
  await expect(card.getByRole('heading', { name: '2x A100 80GB' })).toBeVisible()
  await expect(card).toContainText('$2.640/hr')
  await expect(card.getByText(/^10m \d{1,2}s$/)).toBeVisible()
})

test('79 every status has its words', async ({ page, visit, seeds }) => {
  const texts = {
    pending: 'Booting up instance',
    starting: 'Setting up instance',
    mounting: 'Setting up instance',
    ready: 'Ready',
    switching_off: 'Switching off',
    deleting: 'Syncing data before deletion',
    deleted: 'Deleted',
  } as const
  const statuses = Object.keys(texts) as (keyof typeof texts)[]
  await answer(
    page,
    'get',
    '/pods',
    statuses.map((status) => aPod({ id: id(status), status, gpu_type: status })),
  )
  await visit('/pods', { as: await seeds.hobby1() })
  for (const status of statuses) {
    const card = page.getByRole('article', { name: `2x ${status.replace('_', ' ')}` })
    await expect(card.getByText(texts[status], { exact: true })).toBeVisible()
  }
})

test('79a a deleted pod is grey and still, says why, and asks for nothing more', async ({
  page,
  visit,
  seeds,
}) => {
  const detail = 'This configuration is not available any more. Nothing was charged.'
  const pod = aPod({
    status: 'deleted',
    status_reason: 'setup_failed',
    status_detail: detail,
    created_at: ago(180),
    ended_at: ago(119),
  })
  await answer(page, 'get', '/pods', [pod, aPod({ id: id('lives'), gpu_type: 'LIVING' })])
  await page.clock.install()
  const requests = new Requests(page)
  await visit('/pods', { as: await seeds.hobby1() })
  const card = page.getByRole('article', { name: '2x A100 80GB' })
  await expect(card.getByText(detail)).toBeVisible()
  await expect(card.getByText('ssh -p')).toHaveCount(0)
  await expect(card.getByRole('button', { name: 'Delete' })).toBeDisabled()
  await expect(card.getByText('1m 1s', { exact: true })).toBeVisible()
  const shade = (name: string) =>
    page.getByRole('heading', { name }).evaluate((heading) => getComputedStyle(heading).color)
  expect(await shade('2x A100 80GB')).not.toBe(await shade('2x LIVING'))
  const before = requests.to('get', '/pods').length
  await page.clock.runFor(5 * 60_000)
  await expect(card.getByText('1m 1s', { exact: true })).toBeVisible()
  expect(requests.to('get', '/pods').length).toBe(before)
})

test('93 a first load that fails says so; a later one that fails changes nothing', async ({
  page,
  visit,
  seeds,
  homeport,
}) => {
  const as = await seeds.hobby1()
  const watch = new Watch(page, homeport.url)
  await page.clock.install()
  await refuse(page, 'get', '/pods', 500, 'boom')
  await visit('/pods', { as })
  await expect(page.getByRole('alert').getByText('Failed to fetch pods')).toBeVisible()
  await answer(page, 'get', '/pods', [aPod({ status: 'pending', progress: 0 })])
  await page.getByRole('button', { name: 'Try again' }).click()
  const main = page.getByRole('main')
  await expect(main.getByText('Booting up instance')).toBeVisible()
  await expect(main.getByText('Failed to fetch pods')).toHaveCount(0)

  await refuse(page, 'get', '/pods', 500, 'boom')
  watch.errors.length = 0
  await page.clock.runFor(32_000)
  await expect.poll(() => watch.errors.join('\n')).toContain('query failed pods')
  await expect(main.getByText('Booting up instance')).toBeVisible()
  await expect(main.getByText('Failed to fetch pods')).toHaveCount(0)
  await expect(page.getByRole('alert')).toHaveCount(0)
})

test('94 everybody reads of the 16 % that Pro is cheaper', async ({ page, visit, seeds }) => {
  for (const as of [undefined, await seeds.hobby()]) {
    await visit('/pods', as ? { as } : {})
    const line = page.getByRole('main').getByText('Pro gives 16% cheaper prices')
    await expect(line).toBeVisible()
    await expect(line.getByRole('link')).toHaveAttribute('href', '/create-team')
  }
  await visit('/pods', { as: (await seeds.pro()).admin })
  await expect(page.getByText('Your Pro plan gives 16% cheaper prices')).toBeVisible()
})

test('95 a visitor sees the empty list, and nobody is asked for pods', async ({ page, visit }) => {
  const requests = new Requests(page)
  await visit('/pods')
  await expect(page.getByText('No pods yet')).toBeVisible()
  await page.waitForLoadState('networkidle')
  expect(requests.to('get', '/pods')).toEqual([])
})

test('96 the first load shows skeletons as high as the cards, a refresh shows none', async ({
  page,
  visit,
  seeds,
}) => {
  const as = await seeds.hobby1()
  await page.clock.install()
  await answer(page, 'get', '/pods', [
    aPod({ id: id('a'), created_at: ago(10) }),
    aPod({ id: id('b'), status: 'pending', progress: 0, gpu_type: 'COMING' }),
  ])
  const skeletons = page.locator('main [aria-busy=true] > *')
  for (const width of ['D', 'M'] as const) {
    const release = await hold(page, 'get', '/pods')
    await visit('/pods', { as, width })
    await expect(skeletons.first()).toBeVisible()
    const before = await skeletons.first().boundingBox()
    release()
    const card = page.getByRole('article').first()
    await expect(card.getByText('ssh -p')).toBeVisible()
    await expect(skeletons).toHaveCount(0)
    const after = await card.boundingBox()
    expect(before?.y, `at ${widths[width].width}`).toBe(after?.y)
    expect(before?.height, `at ${widths[width].width}`).toBe(after?.height)
  }
  const release = await hold(page, 'get', '/pods')
  const asked = page.waitForRequest((request) => request.url().includes('/api/pods?'))
  await page.clock.runFor(30_000)
  await asked
  await expect(page.getByRole('article')).toHaveCount(2)
  await expect(skeletons).toHaveCount(0)
  release()
})

test('97 a team without pods finds the way to a first one', async ({ page, visit, seeds }) => {
  const { admin } = await seeds.pro()
  await visit('/pods', { as: admin })
  const main = page.getByRole('main')
  await expect(main.getByText('No pods yet')).toBeVisible()
  await main.getByRole('link', { name: 'Choose a GPU' }).click()
  await expect(page).toHaveURL(/\/create$/)
})
