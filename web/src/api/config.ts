import { asRecord } from '@/lib/storage'

/** What the server tells every page about its surroundings. */
export interface Config {
  /** Where the API's paths begin: '/api', or the address of its own host. */
  readonly apiBase: string
  /** The address of the authentication service. */
  readonly authUrl: string
  /** The host under which pods are reached. */
  readonly podHost: string
  readonly supportEmail: string
  readonly salesEmail: string
}

let loading: Promise<Config> | null = null

/** Loads /config.json once; a failed load is tried again by the next caller. */
export function loadConfig(): Promise<Config> {
  loading ??= fetchConfig().catch((error: unknown) => {
    loading = null
    throw error
  })
  return loading
}

async function fetchConfig(): Promise<Config> {
  const response = await fetch('/config.json')
  if (!response.ok) throw new Error(`config.json: status ${response.status}`)
  const body = asRecord(await response.json())
  const text = (key: string, fallback: string) => {
    const value = body?.[key]
    return typeof value === 'string' && value !== '' ? value : fallback
  }
  return {
    apiBase: text('api_base', '/api').replace(/\/$/, ''),
    authUrl: new URL(text('auth_url', '/auth/v1'), location.origin).href,
    podHost: text('pod_host', location.hostname),
    supportEmail: text('support_email', ''),
    salesEmail: text('sales_email', ''),
  }
}
