import type { AuthChangeEvent, GoTrueClient, Session } from '@supabase/auth-js'
import { wait } from '@/lib/poll'
import { clearStored, storagePrefix } from '@/lib/storage'
import { loadConfig } from './config'

/** Who the reader is, as far as is known. `problem` says why a mailed link did not sign in. */
export type SessionState =
  | { readonly status: 'loading' }
  | { readonly status: 'none'; readonly problem: string | null }
  | { readonly status: 'in'; readonly userId: string; readonly email: string }

const storageKey = `${storagePrefix}auth`
const loading: SessionState = { status: 'loading' }
const none: SessionState = { status: 'none', problem: null }

let state: SessionState = loading
const watchers = new Set<() => void>()
const departures = new Set<() => void>()
let client: Promise<GoTrueClient> | null = null

/** The present state; stable between changes. */
export function sessionState(): SessionState {
  return state
}

/** Calls back on every change. Returns the way to stop. */
export function watchSession(watcher: () => void): () => void {
  watchers.add(watcher)
  return () => watchers.delete(watcher)
}

/** Calls back when a user is gone: everything cached for that user must go too. */
export function onDeparture(listener: () => void): void {
  departures.add(listener)
}

/** Resolves once it is known whether there is a session. */
export function sessionKnown(): Promise<SessionState> {
  if (state.status !== 'loading') return Promise.resolve(state)
  return new Promise((resolve) => {
    const stop = watchSession(() => {
      if (state.status === 'loading') return
      stop()
      resolve(state)
    })
  })
}

let untold = true

/** Whether a mailed link has just failed to sign in; true for the first who asks. */
export function takeProblem(): boolean {
  const taken = untold && state.status === 'none' && state.problem !== null
  if (taken) untold = false
  return taken
}

/** Finds out whether there is a session, from what the boot script saw. */
export async function startSession(boot: HomeportBoot | undefined): Promise<void> {
  window.addEventListener('storage', followOtherTabs)
  if (!boot?.tokenHash && !boot?.stored) {
    setState(boot?.problem ? { status: 'none', problem: boot.problem } : none)
    return
  }
  try {
    const auth = await authClient()
    const problem = boot.tokenHash ? await redeem(auth, boot.tokenHash) : null
    const { data } = await auth.getSession()
    setState(data.session ? signedIn(data.session) : { status: 'none', problem })
  } catch (error) {
    console.error('session: not resolved', error)
    setState(none)
  }
}

/** Asks for a mailed link. Returns null, or the service's message as it is. */
export async function requestLink(email: string): Promise<string | null> {
  const auth = await authClient()
  const { error } = await auth.signInWithOtp({ email, options: { emailRedirectTo: location.origin } })
  return error ? error.message : null
}

/** The bearer token of the session, renewed when it is about to end; null without a session. */
export async function accessToken(): Promise<string | null> {
  if (state.status !== 'in') return null
  const auth = await authClient()
  const { data, error } = await auth.getSession()
  if (data.session) return data.session.access_token
  // The service cannot be reached, which says nothing about the session: the call fails, nobody is signed out.
  if (error && sessionState().status === 'in') throw error
  dropSession()
  return null
}

let renewal: Promise<string | null> | null = null

/** A new token after the API refused the old one; null when the session is over. */
export function renewToken(): Promise<string | null> {
  renewal ??= authClient()
    .then((auth) => auth.refreshSession())
    .then(({ data, error }) => {
      // A service that cannot be reached says nothing about the session.
      if (error?.name === 'AuthRetryableFetchError') throw error
      return data.session?.access_token ?? null
    })
    .finally(() => {
      renewal = null
    })
  return renewal
}

/** Ends a session that the API no longer accepts, without asking the service. */
export function dropSession(): void {
  clearStored()
  depart()
}

const signOutLimit = 5000

/** Signs out and loads the page anew; a service that refuses or never answers changes nothing of it. */
export async function signOut(): Promise<void> {
  depart()
  try {
    const told = authClient().then((auth) => auth.signOut({ scope: 'local' }))
    await Promise.race([told, wait(signOutLimit)])
  } catch (error) {
    console.error('session: sign-out failed', error)
  } finally {
    clearStored()
    location.reload()
  }
}

function authClient(): Promise<GoTrueClient> {
  client ??= createClient().catch((error: unknown) => {
    client = null
    throw error
  })
  return client
}

async function createClient(): Promise<GoTrueClient> {
  const [{ AuthClient }, config] = await Promise.all([import('@supabase/auth-js'), loadConfig()])
  const auth = new AuthClient({
    url: config.authUrl,
    storageKey,
    flowType: 'implicit',
    detectSessionInUrl: false,
    autoRefreshToken: true,
    persistSession: true,
  })
  auth.onAuthStateChange(follow)
  return auth
}

async function redeem(auth: GoTrueClient, tokenHash: string): Promise<string | null> {
  const { error } = await auth.verifyOtp({ token_hash: tokenHash, type: 'magiclink' })
  return error ? error.message : null
}

function follow(event: AuthChangeEvent, session: Session | null): void {
  if (event === 'INITIAL_SESSION') return
  if (session) {
    setState(signedIn(session))
  } else if (event === 'SIGNED_OUT') {
    clearStored()
    depart()
  }
}

function followOtherTabs(event: StorageEvent): void {
  if (event.key !== storageKey && event.key !== null) return
  if (state.status === 'in' && event.newValue === null) {
    dropSession()
  } else if (state.status === 'none' && event.newValue !== null) {
    authClient()
      .then((auth) => auth.getSession())
      .then(({ data }) => {
        if (data.session) setState(signedIn(data.session))
      })
      .catch((error: unknown) => console.error('session: not taken over', error))
  }
}

function signedIn(session: Session): SessionState {
  const { id, email } = session.user
  return { status: 'in', userId: id, email: email ?? '' }
}

function depart(): void {
  if (state.status !== 'in') return
  for (const listener of departures) listener()
  setState(none)
}

function setState(next: SessionState): void {
  if (state.status === 'in' && next.status === 'in') {
    if (state.userId === next.userId && state.email === next.email) return
    // Another person; the same one under a new address keeps what is cached.
    if (state.userId !== next.userId) for (const listener of departures) listener()
  }
  state = next
  for (const watcher of [...watchers]) watcher()
}
