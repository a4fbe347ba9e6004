// Beyond the checks: what a volume holds, version by version, without a pod.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Locator, Page } from '@playwright/test'
import type { components } from '../src/api/schema.gen'
import { answer, hold, Requests, refuse } from './answers'
import { ago, aPod, aVolume, id } from './bodies'
import type { Pod, Volume } from './client'
import { expect, test } from './fixture'
import { expectAccessible, expectNoOverflow } from './looks'
import { Ssh } from './ssh'

type Version = components['schemas']['Version']
type Entry = components['schemas']['FolderEntry']

const dialog = (page: Page) => page.getByRole('dialog', { name: /^Files of / })
const versions = (page: Page) =>
  dialog(page).getByRole('navigation', { name: 'Versions' }).getByRole('button')
const list = (page: Page) => dialog(page).getByRole('list', { name: /^Contents of / })
const row = (page: Page, name: RegExp) => list(page).getByRole('button', { name })

async function save(page: Page, button: Locator): Promise<{ name: string; path: string }> {
  const waiting = page.waitForEvent('download')
  await button.click()
  const file = await waiting
  return { name: file.suggestedFilename(), path: await file.path() }
}

const sum = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

test('two versions of a real pod are browsed, downloaded and restored, and a new pod finds the old bytes', async ({
  page,
  visit,
  seeds,
  homeport,
}) => {
  test.setTimeout(240_000)
  const as = await seeds.newcomer('files')
  await as.pay(25)
  const ssh = new Ssh(homeport)
  const team_id = as.teamId
  const volume = await as.post<Volume>('/volumes', { name: 'datasets', team_id })
  const key = await as.post<{ id: string }>('/ssh-keys', { name: 'k', public_key: ssh.publicKey, team_id })
  const offer = (await as.offers('H100_80GB')).find((o) => o.gpuCount === 1)
  if (offer === undefined) throw new Error('no offer')
  const work = async (command: string): Promise<string> => {
    const pod: Pod = await as.ready((await as.createPod(offer, volume.id, key.id)).id)
    const out = await ssh.run(`ssh -p ${pod.ssh_port} root@${pod.id.split('-')[0]}.${pod.ssh_host}`, command)
    await as.delete(`/pods/${pod.id}?team_id=${team_id}`)
    await as.ended(pod.id)
    return out
  }
  const sums =
    'cd /workspace && find . -type f ! -path "./.homeport/*" -print0 | sort -z | xargs -0 sha256sum'
  const first = await work(
    `mkdir -p "/workspace/runs/100% done" /workspace/small && echo in > /workspace/small/in && cd /workspace && head -c 9000000 /dev/urandom > "runs/100% done/model.pt" && ` +
      `echo one > notes.txt && ln notes.txt "runs/same" && ln -s notes.txt link && truncate -s 40M hole && ${sums}`,
  )
  const second = await work(`cd /workspace && echo two > notes.txt && rm -r runs && ${sums}`)
  expect(second).not.toBe(first)

  await visit('/storage', { as })
  await page.getByRole('button', { name: 'Files of datasets' }).click()
  await expect(versions(page)).not.toHaveCount(0)
  await expect(versions(page).first()).toContainText('Newest')
  await expect(dialog(page).getByRole('button', { name: 'Restore this version' })).toHaveCount(0)
  await expect(row(page, /notes\.txt/)).toContainText('4 B')
  await expect(row(page, /Open folder runs/)).toHaveCount(0)

  await test.step('the first version is a click away', async () => {
    const old = (await as.get<Version[]>(`/volumes/${volume.id}/versions?team_id=${team_id}`)).findLast(
      (v) => v.entries > 4,
    )
    const all = await as.get<Version[]>(`/volumes/${volume.id}/versions?team_id=${team_id}`)
    await versions(page)
      .nth(all.findIndex((v) => v.version === old?.version))
      .click()
    await row(page, /Open folder runs/).click()
    await row(page, /Open folder 100% done/).click()
    await expect(dialog(page).getByRole('navigation', { name: 'Folder' })).toContainText(
      'datasets/runs/100% done',
    )
    const file = await save(page, row(page, /model\.pt/))
    expect(file.name).toBe('model.pt')
    expect(first).toContain(sum(readFileSync(file.path)))
    await dialog(page).getByRole('button', { name: 'Go to datasets' }).click()
  })

  await test.step('the whole of it is a tar archive', async () => {
    const file = await save(page, dialog(page).getByRole('button', { name: 'Download as tar' }))
    expect(file.name).toBe('datasets.tar')
    expect(statSync(file.path).size, 'holes take no room').toBeLessThan(12_000_000)
    const out = mkdtempSync(join(tmpdir(), 'homeport-tar-'))
    execFileSync('tar', ['-xpf', file.path, '-C', out])
    const found = execFileSync('sh', ['-c', sums.replace('/workspace', `${out}/workspace`)], {
      encoding: 'utf8',
    })
    expect(found).toBe(first)
    expect(statSync(join(out, 'workspace/notes.txt')).ino).toBe(
      statSync(join(out, 'workspace/runs/same')).ino,
    )
    expect(readdirSync(join(out, 'workspace'))).toContain('link')
    rmSync(out, { recursive: true })
  })

  await test.step('it is restored, and stays the newest', async () => {
    await dialog(page).getByRole('button', { name: 'Restore this version' }).click()
    const question = page.getByRole('alertdialog')
    await expect(question).toContainText('Nothing is lost')
    await question.getByRole('button', { name: 'Restore' }).click()
    await expect(page.getByRole('status').filter({ hasText: 'are the newest again' })).toBeVisible()
    await expect(versions(page).first()).toContainText(/Version \d+, restored from \d+/)
    await expect(dialog(page)).toBeVisible()
    await expect(row(page, /Open folder runs/)).toBeVisible()
  })

  expect(await work(sums), 'the next pod finds the old bytes').toBe(first)

  await test.step('the operator has the same at hand', async () => {
    const out = JSON.parse(homeport.command('volume', 'versions', volume.id, '--json'))
    expect(out.versions.map((v: { version: number }) => v.version).length).toBeGreaterThanOrEqual(3)
    expect(homeport.command('volume', 'cat', volume.id, 'notes.txt')).toBe('one\n')
    expect(homeport.command('volume', 'ls', volume.id, 'runs')).toContain('100% done')
    expect(homeport.command('volume', 'tar', volume.id, 'small')).toContain('small/in')
    const before = out.versions.find((v: { restored_from?: number }) => v.restored_from === undefined)
    const made = homeport.command('volume', 'restore', volume.id, String(before.version))
    expect(made).toMatch(/^Version \d+ is the newest\.\n$/)
  })
})

function aVersion(part: Partial<Version> = {}): Version {
  return {
    version: 2,
    created_at: ago(180),
    newest: true,
    size_gb: 1.25,
    size_bytes: 1_250_000_000,
    entries: 4213,
    kind: 'background',
    pod_id: id('9f3c1a77'),
    restored_from: null,
    files_added: 12,
    files_changed: 1,
    files_removed: 3,
    skipped: 0,
    unstable: 0,
    ...part,
  }
}

const old = aVersion({
  version: 1,
  newest: false,
  created_at: ago(7200),
  files_added: null,
  files_changed: null,
  files_removed: null,
})

function anEntry(name: string, part: Partial<Entry> = {}): Entry {
  return {
    name,
    path: name,
    type: 'file',
    size: 12_345,
    modified_at: ago(86_400),
    mode: '-rw-r--r--',
    target: null,
    ...part,
  }
}

const someEntries = [
  anEntry('runs', { type: 'folder', size: 0 }),
  anEntry('latest', { type: 'link', size: 0, target: 'runs/7' }),
  anEntry(`a-very-long-name-${'of-a-checkpoint-'.repeat(12)}.safetensors`, { size: 4_999_999_999 }),
  anEntry('train.py'),
]

async function stage(
  page: Page,
  entries: Entry[] = someEntries,
  volume: Partial<Volume> = {},
): Promise<void> {
  await answer(page, 'get', '/volumes', [aVolume(volume)])
  await answer(page, 'get', '/volumes/{id}/versions', [aVersion(), old])
  await answer(page, 'get', '/volumes/{id}/versions/{version}/files', (request) => {
    const asked = new URL(request.url()).searchParams
    const offset = Number(asked.get('offset'))
    const path = asked.get('path') ?? ''
    const all = path === '' ? entries : []
    return { version: 2, path, total: all.length, offset, entries: all.slice(offset, offset + 200) }
  })
}

for (const width of ['D', 'M'] as const) {
  test(`the file browser is whole at ${width}`, async ({ page, visit, seeds }) => {
    await stage(page)
    await visit('/storage', { as: await seeds.hobby1(), width })
    await page.getByRole('button', { name: 'Files of datasets' }).click()
    await expect(row(page, /train\.py/)).toContainText('12.3 kB')
    if (width === 'D') {
      await expect(versions(page).first()).toContainText('12 added, 1 changed, 3 removed')
      await expect(versions(page).first()).toContainText('1.25 GB, 4,213 entries')
    }
    await expectNoOverflow(page)
    await expectAccessible(page)
    await row(page, /Open folder runs/).click()
    await expect(dialog(page).getByText('This folder is empty.')).toBeVisible()
    await expectAccessible(page)
  })
}

test('the browser is loaded when somebody looks, and closes to where it was opened', async ({
  page,
  visit,
  seeds,
}) => {
  await stage(page)
  const requests = new Requests(page)
  await visit('/storage', { as: await seeds.hobby1() })
  const open = page.getByRole('button', { name: 'Files of datasets' })
  await expect(open).toBeVisible()
  expect(requests.to('get', '/volumes/{id}/versions')).toEqual([])
  await open.click()
  await expect(row(page, /train\.py/)).toBeVisible()
  await page.keyboard.press('Escape')
  await expect(dialog(page)).toHaveCount(0)
  await expect(open).toBeFocused()
})

test('the files stay on show when the window gets narrow and wide again', async ({ page, visit, seeds }) => {
  await stage(page)
  await answer(page, 'get', '/volumes/{id}/versions/{version}/files', (request) => {
    const path = new URL(request.url()).searchParams.get('path') ?? ''
    const entries = path === '' ? someEntries : [anEntry('inside', { path: 'runs/inside' })]
    return { version: 2, path, total: entries.length, offset: 0, entries }
  })
  await visit('/storage', { as: await seeds.hobby1() })
  await page.getByRole('button', { name: 'Files of datasets' }).click()
  await row(page, /Open folder runs/).click()
  await expect(row(page, /inside/)).toBeVisible()
  for (const width of [1000, 390, 1440]) {
    await page.setViewportSize({ width, height: 844 })
    await expect(row(page, /inside/), `at ${width} px`).toBeVisible()
  }
  await page.keyboard.press('Escape')
  await expect(dialog(page)).toHaveCount(0)
})

test('a folder of 100,000 files is walked with the keyboard', async ({ page, visit, seeds }) => {
  await stage(
    page,
    Array.from({ length: 100_000 }, (_, n) => anEntry(`f-${String(n).padStart(5, '0')}`)),
  )
  const requests = new Requests(page)
  await visit('/storage', { as: await seeds.hobby1() })
  await page.getByRole('button', { name: 'Files of datasets' }).click()
  await row(page, /f-00000/).focus()
  await page.keyboard.press('ArrowDown')
  await expect(row(page, /f-00001/)).toBeFocused()
  await page.keyboard.press('End')
  await expect(row(page, /f-99999/)).toBeFocused()
  expect(await list(page).getByRole('listitem').count(), 'rows that are drawn').toBeLessThan(60)
  expect(
    requests.to('get', '/volumes/{id}/versions/{version}/files').length,
    'pages that were read',
  ).toBeLessThan(6)
  await page.keyboard.press('Home')
  await expect(row(page, /f-00000/)).toBeFocused()
})

test('Tab finds the list though a link is its first entry', async ({ page, visit, seeds }) => {
  await stage(page, [anEntry('latest', { type: 'link', size: 0, target: 'model.pt' }), anEntry('model.pt')])
  await visit('/storage', { as: await seeds.hobby1() })
  await page.getByRole('button', { name: 'Files of datasets' }).click()
  await expect(row(page, /model\.pt/)).toBeVisible()
  await dialog(page).getByRole('button', { name: 'Download as tar' }).focus()
  await page.keyboard.press('Tab')
  await page.keyboard.press('ArrowDown')
  await expect(row(page, /model\.pt/)).toBeFocused()
})

test('Tab finds the list though its row was scrolled away', async ({ page, visit, seeds }) => {
  await stage(
    page,
    Array.from({ length: 1000 }, (_, n) => anEntry(`f-${String(n).padStart(3, '0')}`)),
  )
  await visit('/storage', { as: await seeds.hobby1() })
  await page.getByRole('button', { name: 'Files of datasets' }).click()
  await expect(row(page, /f-000/)).toBeVisible()
  await list(page)
    .locator('..')
    .evaluate((box) => box.scrollTo(0, 48 * 500))
  await expect(row(page, /f-500/)).toBeVisible()
  await dialog(page).getByRole('button', { name: 'Download as tar' }).focus()
  await page.keyboard.press('Tab')
  await expect(row(page, /f-500/)).toBeFocused()
  await page.keyboard.press('ArrowDown')
  await expect(row(page, /f-501/)).toBeFocused()
})

test('the focus goes along into folders and out of them', async ({ page, visit, seeds }) => {
  await stage(page)
  const folder = (name: string, path = name) => anEntry(name, { path, type: 'folder', size: 0 })
  const folders: Record<string, Entry[]> = {
    '': [folder('data'), folder('runs')],
    runs: [anEntry('in', { path: 'runs/in' }), folder('empty', 'runs/empty')],
  }
  await answer(page, 'get', '/volumes/{id}/versions/{version}/files', (request) => {
    const path = new URL(request.url()).searchParams.get('path') ?? ''
    const entries = folders[path] ?? []
    return { version: 2, path, total: entries.length, offset: 0, entries }
  })
  await visit('/storage', { as: await seeds.hobby1() })
  await page.getByRole('button', { name: 'Files of datasets' }).click()
  await row(page, /Open folder runs/).press('Enter')
  await expect(row(page, /Download in/)).toBeFocused()
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await expect(dialog(page).getByText('This folder is empty.')).toBeFocused()
  await page.keyboard.press('Backspace')
  await expect(row(page, /Open folder empty/)).toBeFocused()
  await page.keyboard.press('Enter')
  await dialog(page).getByRole('button', { name: 'Go to datasets' }).press('Enter')
  await expect(row(page, /Open folder runs/)).toBeFocused()
})

test('the way back out of a folder leads to its row, however far down', async ({ page, visit, seeds }) => {
  await stage(page)
  const folders = Array.from({ length: 1000 }, (_, n) => `f-${String(n).padStart(3, '0')}`)
  await answer(page, 'get', '/volumes/{id}/versions/{version}/files', (request) => {
    const { searchParams } = new URL(request.url())
    const path = searchParams.get('path') ?? ''
    const offset = Number(searchParams.get('offset') ?? 0)
    const entries = folders
      .slice(offset, offset + 200)
      .map((name) => anEntry(name, { type: 'folder', size: 0 }))
    return path === ''
      ? { version: 2, path, total: folders.length, offset, entries }
      : { version: 2, path, total: 0, offset: 0, entries: [] }
  })
  await visit('/storage', { as: await seeds.hobby1() })
  await page.getByRole('button', { name: 'Files of datasets' }).click()
  await row(page, /Open folder f-000/).focus()
  await page.keyboard.press('End')
  await row(page, /Open folder f-999/).press('Enter')
  await expect(dialog(page).getByText('This folder is empty.')).toBeFocused()
  await page.keyboard.press('Backspace')
  await expect(row(page, /Open folder f-999/)).toBeFocused()
})

test('a newer version without the folder is shown from its top', async ({ page, visit, seeds }) => {
  const as = await seeds.hobby1()
  const pod = aPod({ team_id: as.teamId, created_by: as.userId })
  await answer(page, 'get', '/pods', () => [pod])
  await answer(page, 'delete', '/pods/{id}', undefined)
  const deleted = await hold(page, 'delete', '/pods/{id}')
  await stage(page, someEntries, { team_id: as.teamId })
  let newer = false
  await answer(page, 'get', '/volumes/{id}/versions', () =>
    newer ? [aVersion({ version: 3 }), aVersion({ newest: false })] : [aVersion(), old],
  )
  await answer(page, 'get', '/volumes/{id}/versions/{version}/files', (request) => {
    const path = new URL(request.url()).searchParams.get('path') ?? ''
    const top = newer ? [anEntry('left.txt')] : someEntries
    const entries = path === '' ? top : [anEntry('in', { path: `${path}/in` })]
    return { version: newer ? 3 : 2, path, total: entries.length, offset: 0, entries }
  })
  await visit('/pods', { as })
  await page.getByRole('article').getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('alertdialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('link', { name: 'Storage' }).click()
  await page.getByRole('button', { name: 'Files of datasets' }).click()
  await row(page, /Open folder runs/).click()
  await expect(row(page, /Download in/)).toBeVisible()
  newer = true // by the last sync of the pod
  deleted()
  await expect(row(page, /left\.txt/)).toBeVisible()
  await expect(dialog(page).getByText('Failed to fetch the folder')).toHaveCount(0)
})

test('a volume in use is browsed, and its restore says why not', async ({ page, visit, seeds }) => {
  await stage(page, someEntries, { currently_used: true })
  await visit('/storage', { as: await seeds.hobby1() })
  await page.getByRole('button', { name: 'Files of datasets' }).click()
  await versions(page).nth(1).click()
  const restore = dialog(page).getByRole('button', { name: 'Restore this version' })
  await expect(restore).toBeDisabled()
  await expect(restore).toHaveAttribute('title', 'A pod is using this volume')
})

test('a refused restore and a refused download say why, and nothing is closed', async ({
  page,
  visit,
  seeds,
}) => {
  const as = await seeds.hobby1()
  await stage(page, someEntries, { created_by: as.userId })
  await refuse(page, 'post', '/volumes/{id}/versions/{version}/restore', 409, 'A pod is using this volume.')
  await visit('/storage', { as })
  await page.getByRole('button', { name: 'Files of datasets' }).click()
  await versions(page).nth(1).click()
  const restore = dialog(page).getByRole('button', { name: 'Restore this version' })
  await restore.click()
  await page.keyboard.press('Escape')
  await expect(page.getByRole('alertdialog')).toHaveCount(0)
  await expect(restore).toBeFocused()
  await restore.click()
  await page.getByRole('alertdialog').getByRole('button', { name: 'Restore' }).click()
  await expect(page.getByRole('alert').filter({ hasText: 'Failed to restore the version' })).toContainText(
    'A pod is using this volume.',
  )
  await expect(dialog(page)).toBeVisible()
  await page.route(/\/versions\/1\/file\?/, (route) =>
    route.fulfill({
      status: 503,
      contentType: 'application/problem+json',
      body:
        route.request().method() === 'HEAD' ? '' : JSON.stringify({ status: 503, detail: 'It is damaged.' }),
    }),
  )
  await row(page, /train\.py/).click()
  await expect(page.getByRole('alert').filter({ hasText: 'The download did not start' })).toContainText(
    'It is damaged.',
  )
})

test('what is not there yet, or cannot be read, is told', async ({ page, visit, seeds }) => {
  await stage(page)
  await answer(page, 'get', '/volumes/{id}/versions', [])
  await visit('/storage', { as: await seeds.hobby1() })
  const open = page.getByRole('button', { name: 'Files of datasets' })
  await open.click()
  await expect(dialog(page).getByText('Nothing is saved yet')).toBeVisible()
  await page.keyboard.press('Escape')
  await page.reload()
  await refuse(page, 'get', '/volumes/{id}/versions', 500, 'Something went wrong.')
  await open.click()
  await expect(dialog(page).getByText('Failed to fetch versions')).toBeVisible()
  await answer(page, 'get', '/volumes/{id}/versions', [aVersion(), old])
  await refuse(page, 'get', '/volumes/{id}/versions/{version}/files', 503, 'It is damaged.')
  await dialog(page).getByRole('button', { name: 'Try again' }).click()
  await expect(dialog(page).getByText('Failed to fetch the folder')).toBeVisible()
  await expect(dialog(page).getByText('It is damaged.')).toBeVisible()
  await stage(page)
  const release = await hold(page, 'get', '/volumes/{id}/versions/{version}/files')
  await dialog(page).getByRole('button', { name: 'Try again' }).click()
  release()
  await expect(row(page, /train\.py/)).toBeVisible()
})

test('a visitor sees no files of the example', async ({ page, visit }) => {
  await visit('/storage')
  await expect(page.getByText('datasets').first()).toBeVisible()
  await expect(page.getByRole('button', { name: /^Files of/ })).toHaveCount(0)
})
