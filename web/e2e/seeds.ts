// The people of the tests, made once per worker through the API, each at the
// first test that needs them. Tests share them: what a test changes of one it
// puts back; a test that ends a session or spends money takes a newcomer.
import { Client, until, type Volume } from './client'
import type { Homeport } from './fixture'

interface Named {
  id: string
  name: string
}

/** Who may see the operator's page, on every server of the tests. */
export const operatorEmail = 'operator@example.com'

/** Keys that parse and that nobody holds. */
export const publicKeys = [
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBPW2yMJRI2aKs0Xj0PRLJs+4xQ8fwYxUdbLqDwJXlvG laptop',
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEWzJr6IyWmzV7rlRZwBBqDOD0D8d3kWZCC8W0mY2a3Z desk',
]

/** A Pro team with its people, as the tests know it. */
interface ProTeam {
  readonly id: string
  readonly name: string
  readonly admin: Client
  readonly member: Client
  readonly viewer: Client
  readonly invited: string
}

export class Seeds {
  private made = new Map<string, Promise<unknown>>()

  constructor(private readonly homeport: Homeport) {}

  /** Seed H: on Hobby, with an empty wallet, no volume and no key. */
  hobby(): Promise<Client> {
    return this.once('hobby', () => this.newcomer('hobby'))
  }

  /** Seed H1: H with one volume, one key and 10.00. */
  hobby1(): Promise<Client> {
    return this.once('hobby1', async () => {
      const client = await this.newcomer('hobby1')
      await client.pay(10)
      await this.furnish(client, ['datasets'], publicKeys.slice(0, 1))
      return client
    })
  }

  /** Seeds P (admin), M (member) and a viewer: a Pro team of 5 seats with 3 members and a pending invitation, 241.07, 2 volumes and 2 keys of the admin. */
  pro(): Promise<ProTeam> {
    return this.once('pro', async () => {
      const [admin, member, viewer] = [
        await this.newcomer('admin'),
        await this.newcomer('member'),
        await this.newcomer('viewer'),
      ]
      const name = 'Deep Sea Lab'
      const id = await this.proTeam(admin, name, 5)
      for (const person of [admin, member, viewer]) {
        if (person !== admin) await admin.post(`/teams/${id}/invite`, { email: person.email })
        person.teamId = id
      }
      await admin.patch(`/teams/${id}/members/${viewer.userId}`, { role: 'viewer' })
      const invited = 'pending@example.com'
      await admin.post(`/teams/${id}/invite`, { email: invited })
      await admin.pay(241.07)
      await this.furnish(admin, ['datasets', 'checkpoints'], publicKeys)
      return { id, name, admin, member, viewer, invited }
    })
  }

  /** The one whose address HOMEPORT_OPERATORS names. */
  operator(): Promise<Client> {
    return this.once('operator', () => Client.signIn(this.homeport, operatorEmail))
  }

  /** Somebody new, for this test alone. 30 may come in 5 minutes. */
  newcomer(name = 'newcomer'): Promise<Client> {
    return Client.signIn(this.homeport, `${name}-${Math.random().toString(36).slice(2, 10)}@example.com`)
  }

  /** Pays for a Pro team through the test checkout, for its first month only if so wished, and returns its id. */
  async proTeam(
    admin: Client,
    name: string,
    seats: number,
    outcome: 'pay' | 'pay_once' = 'pay',
  ): Promise<string> {
    const { checkout_url } = await admin.post<{ checkout_url: string }>('/teams/checkout', {
      name,
      description: '',
      member_count: seats,
    })
    await fetch(checkout_url, {
      method: 'POST',
      body: new URLSearchParams({ outcome }),
      redirect: 'manual',
    })
    let id: string | undefined
    await until(`team ${name}`, async () => {
      const { teams } = await admin.get<{ teams: Named[] }>('/user/info')
      id = teams.find((team) => team.name === name)?.id
      return id !== undefined
    })
    return id ?? ''
  }

  private async furnish(client: Client, volumes: string[], keys: string[]): Promise<void> {
    const team_id = client.teamId
    for (const name of volumes) await client.post<Volume>('/volumes', { name, team_id })
    for (const public_key of keys) {
      await client.post('/ssh-keys', { name: public_key.split(' ')[2], public_key, team_id })
    }
  }

  private once<T>(name: string, make: () => Promise<T>): Promise<T> {
    const found = this.made.get(name) as Promise<T> | undefined
    if (found) return found
    const made = make()
    this.made.set(name, made)
    return made
  }
}
