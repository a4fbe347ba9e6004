// A client of the API as a program would be: it signs in through the mailbox
// and keeps its token. Used to seed and to look; the browser does the acting.
import { randomUUID } from 'node:crypto'
import type { components } from '../src/api/schema.gen'
import type { Homeport } from './fixture'

export type Pod = components['schemas']['Pod']
export type Volume = components['schemas']['Volume']
export type Offer = components['schemas']['Offer']
export type Transaction = components['schemas']['Transaction']
export type Balance = components['schemas']['Balance']
export type Segment = components['schemas']['Segment']
export type SSHKey = components['schemas']['SSHKey']
export type UserInfo = components['schemas']['UserInfo']

/** What auth-js keeps in the browser's storage; only the tokens matter here. */
export interface Session {
  access_token: string
  refresh_token: string
}

interface Letter {
  to: string
  text: string
}

export async function newestLetter(homeport: Homeport, to: string): Promise<string> {
  for (let i = 0; i < 100; i++) {
    const letters: Letter[] = await (await fetch(`${homeport.url}/dev/mailbox.json`)).json()
    const letter = letters.find((l) => l.to === to)
    if (letter !== undefined) return letter.text
    await new Promise((r) => setTimeout(r, 100))
  }
  throw new Error(`no mail for ${to}`)
}

export function linkOf(text: string): string {
  const urls = text.match(/https?:\/\/\S+/g) ?? []
  if (urls.length !== 1 || urls[0] === undefined) throw new Error(`the mail has ${urls.length} links`)
  return urls[0]
}

export class Client {
  teamId = ''
  userId = ''
  private session: Session
  private renewedAt = Date.now()

  private constructor(
    readonly homeport: Homeport,
    readonly email: string,
    session: Session,
  ) {
    this.session = session
  }

  /** Signs a new person in, as a program without a browser does. */
  static async signIn(homeport: Homeport, email = `${randomUUID()}@example.com`): Promise<Client> {
    const auth = `${homeport.url}/auth/v1`
    await post(`${auth}/otp?redirect_to=${encodeURIComponent(homeport.url)}`, {
      email,
      data: {},
      create_user: true,
    })
    const page = await (
      await fetch(linkOf(await newestLetter(homeport, email)), { redirect: 'manual' })
    ).text()
    const action = /<form method="post" action="([^"]*)"/.exec(page)?.[1] ?? ''
    const fields = new URLSearchParams()
    for (const m of page.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g)) {
      fields.set(unescapeHtml(m[1] ?? ''), unescapeHtml(m[2] ?? ''))
    }
    const confirmed = await fetch(new URL(unescapeHtml(action), auth), {
      method: 'POST',
      body: fields,
      redirect: 'manual',
    })
    const hash = new URLSearchParams(new URL(confirmed.headers.get('location') ?? '').hash.slice(1))
    const session = await post(`${auth}/verify`, { type: 'magiclink', token_hash: hash.get('token_hash') })
    return new Client(homeport, email, session).known()
  }

  /** A client on a session that a browser holds. */
  static async adopt(homeport: Homeport, email: string, token: string): Promise<Client> {
    return new Client(homeport, email, { access_token: token, refresh_token: '' }).known()
  }

  private async known(): Promise<Client> {
    const info = await this.get<UserInfo>('/user/info')
    this.userId = info.user_id
    this.teamId = info.personal_team.id
    return this
  }

  /** A session that a browser may hold, with most of its token's quarter of an hour left. */
  async fresh(): Promise<Session> {
    if (this.session.refresh_token !== '' && Date.now() - this.renewedAt > 5 * 60_000) {
      const url = `${this.homeport.url}/auth/v1/token?grant_type=refresh_token`
      this.follow(await post(url, { refresh_token: this.session.refresh_token }))
    }
    return this.session
  }

  /** Goes on with the session that a browser renewed: the one before is used up. */
  follow(session: Session): void {
    if (session.refresh_token === this.session.refresh_token) return
    this.session = session
    this.renewedAt = Date.now()
  }

  async call(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Response> {
    return fetch(`${this.homeport.url}/api${path}`, {
      method,
      headers: {
        Authorization: `Bearer ${(await this.fresh()).access_token}`,
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
  }

  async get<T>(path: string): Promise<T> {
    return ok<T>(await this.call('GET', path))
  }

  async post<T>(path: string, body: unknown): Promise<T> {
    return ok<T>(await this.call('POST', path, body))
  }

  async delete(path: string): Promise<void> {
    const r = await this.call('DELETE', path)
    if (!r.ok) throw new Error(`DELETE ${path}: ${r.status} ${await r.text()}`)
  }

  async patch<T>(path: string, body: unknown): Promise<T> {
    return ok<T>(await this.call('PATCH', path, body))
  }

  /** Pays into the wallet through the test checkout and waits for the credit. */
  async pay(amount: number): Promise<void> {
    const before = (await this.balance()).balance
    const { checkout_url } = await this.post<{ checkout_url: string }>(
      `/wallet/credit/checkout?team_id=${this.teamId}`,
      { amount },
    )
    await fetch(checkout_url, {
      method: 'POST',
      body: new URLSearchParams({ outcome: 'pay' }),
      redirect: 'manual',
    })
    await until('the credit', async () => (await this.balance()).balance > before)
  }

  async balance(): Promise<Balance> {
    return this.get<Balance>(`/wallet/balance?team_id=${this.teamId}&include_estimates=true`)
  }

  async offers(gpuType: string): Promise<Offer[]> {
    return (await this.get<Record<string, Offer[]>>(`/resources?team_id=${this.teamId}`))[gpuType] ?? []
  }

  async pod(id: string): Promise<Pod | undefined> {
    return (await this.get<Pod[]>(`/pods?team_id=${this.teamId}`)).find((p) => p.id === id)
  }

  async createPod(offer: Offer, volumeId: string, keyId: string): Promise<Pod> {
    return this.post<Pod>('/pods', podBody(offer, this.teamId, volumeId, keyId))
  }

  async ready(id: string): Promise<Pod> {
    let pod: Pod | undefined
    await until(`pod ${id} to be ready`, async () => {
      pod = await this.pod(id)
      if (pod?.status === 'deleted') throw new Error(`the pod ended: ${pod.status_detail}`)
      return pod?.status === 'ready'
    })
    if (pod === undefined) throw new Error('no pod')
    return pod
  }

  async ended(id: string): Promise<void> {
    await until(`pod ${id} to end`, async () => ((await this.pod(id))?.status ?? 'deleted') === 'deleted')
  }
}

/** The 20 fields with which a client asks for a pod. */
function podBody(offer: Offer, teamId: string, volumeId: string, keyId: string) {
  return {
    volume_id: volumeId,
    ssh_key_id: keyId,
    team_id: teamId,
    cloud_id: offer.cloudId,
    gpu_type: offer.gpuType,
    socket: offer.socket,
    country: offer.country,
    gpu_count: offer.gpuCount,
    gpu_memory: offer.gpuMemory,
    vcpu: offer.vcpu,
    memory: offer.memory,
    price: offer.price,
    currency: offer.currency,
    default_disk_size: offer.defaultDiskSize,
    disk_price: offer.diskPrice,
    security: offer.security,
    provider: offer.provider,
    is_spot: offer.isSpot,
    data_center_id: offer.dataCenterId,
    image: offer.image,
  }
}

export async function until(what: string, check: () => Promise<boolean>, seconds = 60): Promise<void> {
  for (const end = Date.now() + seconds * 1000; Date.now() < end; ) {
    if (await check()) return
    await new Promise((r) => setTimeout(r, 100))
  }
  throw new Error(`waited ${seconds} s for ${what}`)
}

async function post(url: string, body: unknown) {
  const r = await fetch(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
  return ok<Session>(r)
}

async function ok<T>(r: Response): Promise<T> {
  if (!r.ok) throw new Error(`${r.url}: ${r.status} ${await r.text()}`)
  return r.json() as Promise<T>
}

function unescapeHtml(s: string): string {
  return s.replaceAll('&amp;', '&').replaceAll('&#43;', '+').replaceAll('&#34;', '"').replaceAll('&#39;', "'")
}
