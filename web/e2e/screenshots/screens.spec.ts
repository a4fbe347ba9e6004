// Takes every page at both widths from the real server into docs/screenshots:
// as a visitor, on Hobby with nothing yet, and as the admin of a Pro team at work.
import { mkdirSync, rmSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Page } from '@playwright/test'
import type { Client, Pod, SSHKey, Volume } from '../client'
import { type Homeport, test, widths } from '../fixture'
import { openRoutes, operatorRoutes, Traffic } from '../routes'
import { Ssh } from '../ssh'

const out = resolve(import.meta.dirname, '../../../docs/screenshots')
const names = { D: '1440', M: '390' } as const

async function shoot(page: Page, traffic: Traffic, name: string): Promise<void> {
  for (const width of ['D', 'M'] as const) {
    await page.setViewportSize(widths[width])
    await traffic.quiet()
    await page.screenshot({
      path: `${out}/${name}-${names[width]}.png`,
      scale: 'css',
      animations: 'disabled',
    })
  }
}

function nameOf(path: string): string {
  return path === '/' ? 'landing' : path.slice(1)
}

test.beforeAll(() => {
  rmSync(out, { recursive: true, force: true })
  mkdirSync(out)
})

test('as a visitor', async ({ page, visit }) => {
  const traffic = new Traffic(page)
  for (const path of ['/', '/auth', ...openRoutes]) {
    await visit(path)
    await shoot(page, traffic, `visitor-${nameOf(path)}`)
  }
})

test('on Hobby', async ({ page, visit, seeds, homeport }) => {
  const traffic = new Traffic(page)
  const client = await seeds.hobby()
  for (const path of openRoutes) {
    await visit(path, { as: client })
    await shoot(page, traffic, `hobby-${nameOf(path)}`)
  }
  await page.goto(`${homeport.url}/dev/mailbox`)
  await shoot(page, traffic, 'mailbox')
})

test('on Pro', async ({ page, visit, seeds, homeport }) => {
  const traffic = new Traffic(page)
  const { admin } = await seeds.pro()
  await work(homeport, admin)
  for (const path of openRoutes) {
    await visit(path, { as: admin })
    await shoot(page, traffic, `pro-${nameOf(path)}`)
  }
  // What the team did makes the figures of whoever runs this Homeport.
  for (const path of operatorRoutes) {
    await visit(path, { as: await seeds.operator() })
    await shoot(page, traffic, nameOf(path))
  }
})

/** Two pods that run, one that ended, and some files in a volume. */
async function work(homeport: Homeport, client: Client): Promise<void> {
  const ssh = new Ssh(homeport)
  const team_id = client.teamId
  const key = await client.post<SSHKey>('/ssh-keys', { name: 'laptop', public_key: ssh.publicKey, team_id })
  const volumes = await client.get<Volume[]>(`/volumes?team_id=${team_id}`)
  const rent = async (gpuType: string, count: number, volume: Volume | undefined): Promise<Pod> => {
    const offer = (await client.offers(gpuType)).find((each) => each.gpuCount === count)
    if (!offer || !volume) throw new Error(`no ${count}x ${gpuType} or no volume`)
    return client.ready((await client.createPod(offer, volume.id, key.id)).id)
  }
  const first = await rent('A100_80GB', 1, volumes[1])
  const command = `ssh -p ${first.ssh_port} root@${first.id.split('-')[0]}.${first.ssh_host}`
  await ssh.run(command, 'head -c 130000000 /dev/urandom > /workspace/tokens.bin; sync')
  await client.delete(`/pods/${first.id}?team_id=${team_id}`)
  await client.ended(first.id)
  await rent('H100_80GB', 8, volumes[1])
  await rent('A100_80GB', 2, volumes[0])
}
