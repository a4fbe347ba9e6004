// Beyond the checks: a team runs out of money with somebody logged in, and
// comes back. On a server of its own, whose clock is moved.
import { randomBytes } from 'node:crypto'
import { Client, type Pod, type SSHKey, until, type Volume } from './client'
import { enter, expect, type Homeport, newHomeport, test } from './fixture'
import { Ssh, type Terminal } from './ssh'

interface Letter {
  to: string
  subject: string
}

async function subjects(homeport: Homeport, to: string): Promise<string[]> {
  const letters: Letter[] = await (await fetch(`${homeport.url}/dev/mailbox.json`)).json()
  return letters.filter((letter) => letter.to === to).map((letter) => letter.subject)
}

async function advance(homeport: Homeport, seconds: number): Promise<void> {
  const answer = await fetch(`${homeport.url}/dev/clock`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ advance_seconds: Math.ceil(seconds) }),
  })
  if (!answer.ok) throw new Error(`the clock: ${answer.status} ${await answer.text()}`)
}

/** How long the balance lasts, in seconds of business time. */
async function runway(client: Client): Promise<number> {
  const { depletes_at, last_updated } = await client.balance()
  if (depletes_at === undefined) throw new Error('nothing is spent')
  return (Date.parse(depletes_at) - Date.parse(last_updated)) / 1000
}

const command = (pod: Pod) => `ssh -p ${pod.ssh_port} root@${pod.id.split('-')[0]}.${pod.ssh_host}`

test('the money ends with somebody logged in; a payment and one click bring the files back', async ({
  page,
}) => {
  test.setTimeout(240_000)
  const homeport = await newHomeport()
  let terminal: Terminal | undefined
  try {
    await homeport.start()
    const client = await Client.signIn(homeport, 'captain@example.com')
    const ssh = new Ssh(homeport)
    await client.pay(5)
    const team_id = client.teamId
    const volume = await client.post<Volume>('/volumes', { name: 'data', team_id })
    const key = await client.post<SSHKey>('/ssh-keys', { name: 'key', public_key: ssh.publicKey, team_id })
    const offer = (await client.offers('H100_80GB')).find((o) => o.gpuCount === 1 && !o.isSpot)
    if (offer === undefined) throw new Error('no offer')
    const pod = await client.ready((await client.createPod(offer, volume.id, key.id)).id)
    const ours = randomBytes(4096)
    await ssh.run(command(pod), 'cat > /workspace/ours', ours)
    terminal = ssh.terminal(command(pod))
    const on = terminal
    await until('the greeting', async () => on.text.includes('/workspace is your volume'))
    expect(on.text).not.toContain('switched off')

    await test.step('15 minutes before, everybody is told', async () => {
      await advance(homeport, (await runway(client)) - 14 * 60)
      await until('the terminal to tell', async () => on.text.includes('this pod is switched off in'))
      expect(on.text).toMatch(
        /this pod is switched off in 1[34] minutes, at \d\d:\d\d UTC: the team's balance is used up then\./,
      )
      expect(on.text).toContain(`Add funds: ${homeport.url}/billing?team_id=${team_id}`)
      const file = await ssh.run(command(pod), '. /run/homeport-landing && echo $reason $url')
      expect(file).toBe(`balance ${homeport.url}/billing?team_id=${team_id}\n`)
      const later = ssh.terminal(command(pod))
      await until('who logs in later to be told', async () =>
        later.text.includes('this pod is switched off in'),
      )
      await later.close()
      await enter(page, homeport, client)
      await page.goto(`${homeport.url}/pods`)
      await expect(page.getByText('Less than 15 minutes of balance left')).toBeVisible()
      expect(await subjects(homeport, client.email)).toContainEqual(
        expect.stringContaining('15 minutes of balance left'),
      )
    })

    await test.step('a payment calls it off', async () => {
      await client.pay(1)
      await until('the terminal to tell', async () =>
        /not switched off at \d\d:\d\d UTC any more/.test(on.text),
      )
      expect(await ssh.run(command(pod), 'ls /run/homeport-landing 2>&1; true')).toContain('No such file')
    })

    await test.step('the pod lands, and the page and a letter say so', async () => {
      await advance(homeport, (await runway(client)) + 60)
      await client.ended(pod.id)
      await page.goto(`${homeport.url}/pods`)
      await expect(page.getByText('The balance is used up')).toBeVisible()
      await until('the letter', async () =>
        (await subjects(homeport, client.email)).some((subject) =>
          /^The balance of .* is used up$/.test(subject),
        ),
      )
    })

    await test.step('a top-up, one click, and the files are there', async () => {
      await page.goto(`${homeport.url}/billing`)
      await page.getByRole('button', { name: '$25', exact: true }).click()
      await page.getByRole('button', { name: 'Pay Now' }).click()
      await page.locator('button[value="pay"]').click()
      await expect(page).toHaveURL(/\/billing/)
      await expect(page.getByText(/^Payment received/)).toBeVisible()
      await page.goto(`${homeport.url}/pods`)
      await expect(page.getByText('The balance is used up')).toHaveCount(0)
      const made = page.waitForResponse(
        (r) => r.url().endsWith('/api/pods') && r.request().method() === 'POST',
      )
      await page.getByRole('button', { name: /^Start again for / }).click()
      const again = await client.ready(((await (await made).json()) as Pod).id)
      expect(again.volume_id).toBe(volume.id)
      expect(await ssh.run(command(again), 'base64 -w0 /workspace/ours')).toBe(ours.toString('base64'))
    })
  } finally {
    await terminal?.close()
    await homeport.destroy()
  }
})
