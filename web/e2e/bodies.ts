// Bodies as the server would send them: a whole object with what a test says
// of it. Ids are fixed texts, so that a failure reads well.
import type { Balance, Offer, Pod, SSHKey, Transaction, Volume } from './client'

/** The n-th of a kind of id: `id('pod', 1)`. */
export function id(first: string, n = 0): string {
  return `${first.padEnd(8, '0').slice(0, 8)}-aaaa-4aaa-8aaa-${String(n).padStart(12, '0')}`
}

/** An instant some seconds before now. */
export function ago(seconds: number): string {
  return new Date(Date.now() - seconds * 1000).toISOString()
}

export function aPod(part: Partial<Pod> = {}): Pod {
  return {
    id: id('9f3c1a77'),
    team_id: id('7ea0'),
    status: 'ready',
    status_reason: '',
    status_detail: '',
    created_at: ago(600),
    created_by: id('0ae5'),
    auto_relaunch: false,
    relaunch_of: null,
    relaunch_pending: false,
    relaunched_as: null,
    gpu_type: 'A100_80GB',
    gpu_count: 2,
    price: 2.64,
    provider: 'basalt',
    country: 'DE',
    volume_id: id('70'),
    ssh_key_id: id('5e'),
    ssh_host: 'pods.example',
    ssh_port: 30412,
    host_key_fingerprint: 'SHA256:x',
    progress: 100,
    ready_at: ago(540),
    synced_at: ago(30),
    delete_requested_at: null,
    ended_at: null,
    metered_until: null,
    ...part,
  }
}

export function aVolume(part: Partial<Volume> = {}): Volume {
  return {
    id: id('70'),
    team_id: id('7ea0'),
    name: 'datasets',
    size_gb: 123,
    price_per_hour: 0.0246,
    currently_used: false,
    deleted: false,
    deleted_at: null,
    purge_at: null,
    created_at: ago(86_400),
    created_by: id('0ae5'),
    synced_at: ago(3600),
    team_key: false,
    locked: false,
    ...part,
  }
}

export function aKey(part: Partial<SSHKey> = {}): SSHKey {
  return {
    id: id('5e'),
    team_id: id('7ea0'),
    name: 'laptop',
    public_key: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBPW2yMJRI2aKs0Xj0PRLJs+4xQ8fwYxUdbLqDwJXlvG laptop',
    key_type: 'ssh-ed25519',
    fingerprint: 'SHA256:y',
    created_at: ago(86_400),
    created_by: id('0ae5'),
    ...part,
  }
}

export function anOffer(part: Partial<Offer> = {}): Offer {
  return {
    gpuType: 'H100_80GB',
    gpuCount: 1,
    gpuMemory: 80,
    memory: 200,
    vcpu: 26,
    price: 2.49,
    listPrice: 2.49,
    socket: 'SXM5',
    country: 'US',
    provider: 'basalt',
    cloudId: 'basalt-h100-1',
    currency: 'USD',
    defaultDiskSize: 100,
    diskPrice: null,
    security: 'secure_cloud',
    isSpot: false,
    dataCenterId: null,
    image: 'ubuntu-22.04',
    ...part,
  }
}

export function aBalance(part: Partial<Balance> = {}): Balance {
  return { balance: 241.07, spending_per_hour: 0, last_updated: ago(1), ...part }
}

export function aTransaction(part: Partial<Transaction> = {}): Transaction {
  return {
    id: id('74'),
    created_at: ago(3600),
    transaction_type: 'credit',
    resource_type: null,
    resource_id: null,
    amount: 5,
    description: 'Credit added',
    reference_id: null,
    ...part,
  }
}
