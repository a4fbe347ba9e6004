// The product's main job, as one person does it: the page in a real browser,
// the pod with the real ssh and scp, the money recomputed from the API's own
// figures with whole numbers.
import { execFileSync } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from '@playwright/test'
import {
  Client,
  linkOf,
  newestLetter,
  type Pod,
  type Segment,
  type Transaction,
  until,
  type Volume,
} from './client'
import { expect, type Homeport, test } from './fixture'
import { Ssh } from './ssh'

const micro = (usd: number): bigint => BigInt(Math.round(usd * 1e6))

/** An RFC 3339 instant in whole microseconds. */
function micros(instant: string): bigint {
  const fraction = (/\.(\d+)/.exec(instant)?.[1] ?? '').padEnd(6, '0').slice(0, 6)
  return BigInt(Date.parse(instant.replace(/\.\d+/, ''))) * 1000n + BigInt(fraction)
}

/** floor(rate x elapsed), in micro-dollars. */
function cost(rate: number, from: string, to: string): bigint {
  const elapsed = micros(to) - micros(from)
  return elapsed > 0n ? (micro(rate) * elapsed) / 3_600_000_000n : 0n
}

async function signIn(page: Page, homeport: Homeport, email: string): Promise<void> {
  await page.goto(`${homeport.url}/`)
  await page.getByRole('link', { name: 'Login / Signup' }).first().click()
  await page.getByLabel('Email').fill(email)
  await page.getByRole('button', { name: 'Login using Magic Link' }).click()
  await expect(page.getByText('Check your email for a login link')).toBeVisible()
  await page.goto(linkOf(await newestLetter(homeport, email)))
  await expect(page).toHaveURL(/\/create$/)
}

async function token(page: Page): Promise<string> {
  return page.evaluate(() => JSON.parse(localStorage.getItem('homeport-auth') ?? '{}').access_token)
}

/** Picks the single-GPU H100 offer of one cloud by narrowing to its country and price. */
async function createPod(page: Page, client: Client, not: string): Promise<Pod> {
  await page.goto(`${client.homeport.url}/create`)
  await page
    .getByRole('radio', { name: /H100 80GB/ })
    .first()
    .check({ force: true })
  await page.getByRole('radio', { name: '1 GPU', exact: true }).check({ force: true })
  const other = (await client.offers('H100_80GB')).filter(
    (o) => o.gpuCount === 1 && o.provider !== not && !o.isSpot,
  )
  other.sort((a, b) => a.price - b.price)
  const wanted = other[0]
  if (wanted === undefined) throw new Error('no second cloud')
  if (not !== '') {
    await page
      .getByRole('button', { name: 'Filters' })
      .click({ timeout: 2000 })
      .catch(() => undefined)
    await page.getByLabel('Country').selectOption(wanted.country)
  }
  const made = page.waitForResponse((r) => r.url().endsWith('/api/pods') && r.request().method() === 'POST')
  await page.getByRole('button', { name: 'Create Instance' }).first().click()
  const pod: Pod = await (await made).json()
  await expect(page).toHaveURL(/\/pods$/)
  return pod
}

test('sign in, pay, rent, work over SSH, leave, and find the files on another cloud', async ({
  page,
  homeport,
  context,
}) => {
  test.setTimeout(240_000)
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  const email = `${randomUUID()}@example.com`
  await signIn(page, homeport, email)
  const client = await Client.adopt(homeport, email, await token(page))
  const ssh = new Ssh(homeport)

  await test.step('pay 25 dollars in the test checkout', async () => {
    await page.goto(`${homeport.url}/billing`)
    await page.getByRole('button', { name: '$25', exact: true }).click()
    await expect(page.getByLabel('Custom Amount (USD)')).toHaveValue('25')
    await page.getByRole('button', { name: 'Pay Now' }).click()
    await expect(page).toHaveURL(/\/test-checkout\//)
    await page.locator('button[value="pay"]').click()
    await expect(page).toHaveURL(/\/billing/)
    await expect(page.getByText('$25.00').first()).toBeVisible({ timeout: 15_000 })
  })

  await test.step('add a key and a volume', async () => {
    await page.goto(`${homeport.url}/ssh-keys`)
    await page.getByRole('button', { name: 'Create SSH Key' }).first().click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Public key').fill(ssh.publicKey)
    await dialog.getByRole('button', { name: 'Create SSH Key' }).click()
    await page.getByRole('dialog', { name: 'SSH key created' }).getByRole('button', { name: 'Close' }).click()
    await expect(page.getByText('ssh-ed25519').first()).toBeVisible()
    await page.goto(`${homeport.url}/storage`)
    await page.getByRole('button', { name: 'New Storage Volume' }).first().click()
    await page.getByRole('dialog').getByLabel('Name').fill('datasets')
    await page.getByRole('dialog').getByRole('button', { name: 'Create volume' }).click()
    await page.getByRole('dialog', { name: 'Volume created' }).getByRole('button', { name: 'Close' }).click()
    await expect(page.getByRole('row', { name: /datasets/ })).toContainText('Available')
  })

  const first = await createPod(page, client, '')
  const volumeId = first.volume_id
  const dir = mkdtempSync(join(tmpdir(), 'homeport-journey-'))
  let copied = ''
  let manifest = ''

  await test.step('the card goes to ready by itself and its command works', async () => {
    const card = page.getByRole('article').filter({ hasText: 'H100 80GB' })
    await expect(card).toHaveAttribute('data-status', 'ready', { timeout: 60_000 })
    await card.getByRole('button', { name: 'Copy SSH command' }).click()
    await expect(page.getByText('Command copied to clipboard!')).toBeVisible()
    copied = await page.evaluate(() => navigator.clipboard.readText())
    expect(copied).toMatch(/^ssh -p \d+ root@[0-9a-f]{8}\.localhost$/)

    await ssh.run(copied, odd)
    const big = join(dir, 'big')
    writeFileSync(big, randomBytes(50 << 20))
    await ssh.copyIn(copied, big, '/workspace/big')
    manifest = await ssh.run(copied, listing)
    expect(manifest).toContain('hard link')
    rmSync(dir, { recursive: true })
  })

  await test.step('delete: the volume is free, with its size', async () => {
    const card = page.getByRole('article').filter({ hasText: 'H100 80GB' })
    await card.getByRole('button', { name: /Delete/ }).click()
    await page.getByRole('alertdialog').getByRole('button', { name: 'Delete' }).click()
    await expect(card).toHaveAttribute('data-status', /deleting|deleted/)
    await client.ended(first.id)
    const volumes = await client.get<Volume[]>(`/volumes?team_id=${client.teamId}`)
    expect(volumes).toHaveLength(1)
    expect(volumes[0]).toMatchObject({ id: volumeId, currently_used: false, size_gb: 0.05 })
  })

  const second = await createPod(page, client, first.provider)
  expect(second.provider).not.toBe(first.provider)
  await test.step('another cloud has the same /workspace and another /root', async () => {
    const ready = await client.ready(second.id)
    const command = `ssh -p ${ready.ssh_port} root@${ready.id.split('-')[0]}.${ready.ssh_host}`
    expect(await ssh.run(command, listing)).toBe(manifest)
    expect(await ssh.run(command, 'ls -A /root; true')).not.toContain('note')
    await client.delete(`/pods/${second.id}?team_id=${client.teamId}`)
    await client.ended(second.id)
  })

  await test.step('a plain restic gives the files back', async () => {
    const exit = JSON.parse(homeport.command('volume', 'repository', volumeId, '--json'))
    const out = mkdtempSync(join(tmpdir(), 'homeport-restic-'))
    const env = { ...process.env, RESTIC_PASSWORD: exit.password }
    const restic = (...args: string[]) =>
      execFileSync('restic', ['-r', exit.repository, '--no-lock', '--no-cache', ...args], {
        env,
        encoding: 'utf8',
      })
    expect(restic('check', '--read-data')).toContain('no errors were found')
    expect(JSON.parse(restic('snapshots', '--json', 'latest'))[0].id).toBe(exit.snapshot)
    restic('restore', 'latest', '--target', out)
    const sum = execFileSync('sha256sum', [join(out, 'workspace', 'big')], { encoding: 'utf8' }).split(' ')[0]
    expect(manifest).toContain(sum ?? 'no sum')
    rmSync(out, { recursive: true })
  })

  await test.step('the money is the exact integral', async () => {
    const pods = await client.get<Pod[]>(`/pods?team_id=${client.teamId}`)
    const segments = await client.get<Segment[]>(`/volumes/${volumeId}/segments?team_id=${client.teamId}`)
    const balance = await client.balance()
    let want = 25_000_000n
    for (const pod of pods) want -= cost(pod.price, pod.ready_at ?? '', pod.metered_until ?? '')
    for (const s of segments) want -= cost(s.rate, s.from, s.to ?? balance.last_updated)
    expect(micro(balance.balance)).toBe(want)
    const rows = await client.get<Transaction[]>(`/wallet/transactions?team_id=${client.teamId}&limit=1000`)
    for (const pod of pods) {
      const charged = rows
        .filter((r) => r.resource_id === pod.id)
        .reduce((sum, r) => sum + micro(r.amount), 0n)
      expect(charged).toBe(-cost(pod.price, pod.ready_at ?? '', pod.metered_until ?? ''))
    }
    const after = await client.balance()
    const sum = rows.reduce((total, r) => total + micro(r.amount), 0n)
    expect(sum).toBeLessThanOrEqual(micro(balance.balance))
    expect(sum).toBeGreaterThanOrEqual(micro(after.balance))
  })
  await until('no pod to be left', async () => homeport.command('sandbox', 'stop', '--json').includes(':0'))
})

/** Entries that a lesser copy would lose, made in /workspace and in /root. */
const odd = `set -e
echo note > /root/note
cd /workspace
mkdir -p deep/er empty; echo hello > deep/er/file; ln deep/er/file 'hard link'; ln -s ../nowhere dangling
truncate -s 1G sparse; printf x | dd of=sparse bs=1 seek=500000000 conv=notrunc 2>/dev/null
cp /bin/true setuid; chmod 4755 setuid; mkfifo pipe
printf 'old' > old; touch -d '1969-07-20 20:17:40.123456789 UTC' old
printf 'b' > "$(printf 'bad\\377name')"; printf 'n' > "$(printf 'new\\nline')"
sync`

/** Everything that tells two trees apart: names, kinds, modes, owners, times, links, content. */
const listing = `cd /workspace && LC_ALL=C && find . -printf '%P|%y|%m|%U|%G|%s|%T@|%n|%l\\0' | sort -z | tr '\\0' '\\n' &&
find . -type f ! -name sparse -print0 | sort -z | xargs -0 sha256sum && sha256sum sparse && du -k sparse | awk '{print ($1 < 1024) ? "sparse" : "filled"}'`
