// Takes every screen at both widths from the real server, with a pod that runs
// and one that is being set up, into docs/screenshots.
import { randomUUID } from 'node:crypto'
import { resolve } from 'node:path'
import type { Page } from '@playwright/test'
import { Client, linkOf, newestLetter, type SSHKey, type Volume } from '../client'
import { type Homeport, test } from '../fixture'
import { Ssh } from '../ssh'

const out = resolve(import.meta.dirname, '../../../docs/screenshots')
const widths = [
  { name: '1440', size: { width: 1440, height: 900 } },
  { name: '390', size: { width: 390, height: 844 } },
]

async function shoot(page: Page, url: string, name: string): Promise<void> {
  for (const { name: width, size } of widths) {
    await page.setViewportSize(size)
    await page.goto(url)
    await page.waitForLoadState('networkidle')
    await page.screenshot({ path: `${out}/${name}-${width}.png`, scale: 'css', animations: 'disabled' })
  }
}

async function seed(homeport: Homeport, page: Page): Promise<Client> {
  const email = `${randomUUID().slice(0, 8)}@example.com`
  await page.goto(`${homeport.url}/auth`)
  await page.getByLabel('Email').fill(email)
  await page.getByRole('button', { name: 'Login using Magic Link' }).click()
  await page.goto(linkOf(await newestLetter(homeport, email)))
  await page.waitForURL(/\/create$/)
  const token = await page.evaluate(
    () => JSON.parse(localStorage.getItem('homeport-auth') ?? '{}').access_token,
  )
  return Client.adopt(homeport, email, token)
}

test('screens', async ({ page, homeport }) => {
  for (const route of ['home', 'auth', 'pods', 'create', 'storage', 'billing']) {
    await shoot(page, `${homeport.url}/${route}`, `visitor-${route}`)
  }
  const client = await seed(homeport, page)
  for (const route of ['pods', 'create', 'storage', 'billing']) {
    await shoot(page, `${homeport.url}/${route}`, `empty-${route}`)
  }
  await client.pay(250)
  const ssh = new Ssh(homeport)
  const key = await client.post<SSHKey>('/ssh-keys', {
    name: 'laptop',
    public_key: ssh.publicKey,
    team_id: client.teamId,
  })
  const volume = await client.post<Volume>('/volumes', { name: 'datasets', team_id: client.teamId })
  const offer =
    (await client.offers('H100_80GB')).find((o) => o.gpuCount === 8) ?? (await client.offers('H100_80GB'))[0]
  if (offer === undefined) throw new Error('no offer')
  const first = await client.createPod({ ...offer }, volume.id, key.id)
  const ready = await client.ready(first.id)
  const command = `ssh -p ${ready.ssh_port} root@${ready.id.split('-')[0]}.${ready.ssh_host}`
  await ssh.run(command, 'head -c 130000000 /dev/urandom > /workspace/tokens.bin; sync')
  await client.delete(`/pods/${first.id}?team_id=${client.teamId}`)
  await client.ended(first.id)
  const second = await client.createPod({ ...offer }, volume.id, key.id)
  await client.ready(second.id)
  for (const route of [
    'pods',
    'create',
    'storage',
    'ssh-keys',
    'teams',
    'billing',
    'create-team',
    'batch-inference',
  ]) {
    await shoot(page, `${homeport.url}/${route}`, route)
  }
  await shoot(page, `${homeport.url}/dev/mailbox`, 'mailbox')
  await client.delete(`/pods/${second.id}?team_id=${client.teamId}`)
  await client.ended(second.id)
})
