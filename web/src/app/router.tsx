import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Navigate,
  Outlet,
  type RouterHistory,
  redirect,
} from '@tanstack/react-router'
import { sessionKnown, takeProblem } from '@/api/session'
import { takeSavedRedirect } from '@/features/auth/queries'
import { safeRedirect } from '@/lib/redirect'
import { ApplicationError, PageError } from './application-error'
import { Providers } from './providers'

type Search = Readonly<Record<string, string>>

const root = createRootRoute({
  component: Root,
  errorComponent: ApplicationError,
  notFoundComponent: () => <Navigate to="/" replace />,
})

function Root() {
  return (
    <Providers>
      <Outlet />
    </Providers>
  )
}

const landing = lazyRouteComponent(() => import('@/routes/landing'))

const index = createRoute({
  getParentRoute: () => root,
  path: '/',
  beforeLoad: async () => {
    // The prerendered landing page is the visitors' one.
    if (typeof window === 'undefined') return
    const session = await sessionKnown()
    if (session.status === 'in') throw redirect({ href: takeSavedRedirect() ?? '/create', replace: true })
    // A mailed link that did not sign in comes back here: /auth says why, and sends another.
    if (takeProblem()) throw redirect({ to: '/auth', replace: true })
  },
  component: landing,
  errorComponent: ApplicationError,
})
const home = createRoute({
  getParentRoute: () => root,
  path: '/home',
  component: landing,
  errorComponent: ApplicationError,
})

const shell = createRoute({
  getParentRoute: () => root,
  id: 'shell',
  component: lazyRouteComponent(() => import('./shell/shell'), 'Shell'),
  errorComponent: ApplicationError,
})
const auth = createRoute({
  getParentRoute: () => shell,
  path: '/auth',
  validateSearch: texts,
  beforeLoad: async ({ search }) => {
    if ((await sessionKnown()).status !== 'in') return
    throw redirect({ href: safeRedirect(search.redirect, '/pods'), replace: true })
  },
  component: lazyRouteComponent(() => import('@/routes/auth')),
})
const pods = createRoute({
  getParentRoute: () => shell,
  path: '/pods',
  component: lazyRouteComponent(() => import('@/routes/pods')),
})
const create = createRoute({
  getParentRoute: () => shell,
  path: '/create',
  validateSearch: texts,
  component: lazyRouteComponent(() => import('@/routes/create')),
})
const storage = createRoute({
  getParentRoute: () => shell,
  path: '/storage',
  component: lazyRouteComponent(() => import('@/routes/storage')),
})
const keys = createRoute({
  getParentRoute: () => shell,
  path: '/ssh-keys',
  component: lazyRouteComponent(() => import('@/routes/ssh-keys')),
})
const teams = createRoute({
  getParentRoute: () => shell,
  path: '/teams',
  component: lazyRouteComponent(() => import('@/routes/teams')),
})
const billing = createRoute({
  getParentRoute: () => shell,
  path: '/billing',
  validateSearch: texts,
  component: lazyRouteComponent(() => import('@/routes/billing')),
})
const createTeam = createRoute({
  getParentRoute: () => shell,
  path: '/create-team',
  component: lazyRouteComponent(() => import('@/routes/create-team')),
})
const batch = createRoute({
  getParentRoute: () => shell,
  path: '/batch-inference',
  component: lazyRouteComponent(() => import('@/routes/batch-inference')),
})
const clusters = createRoute({
  getParentRoute: () => shell,
  path: '/multi-node-clusters',
  component: lazyRouteComponent(() => import('@/routes/multi-node-clusters')),
})
const operator = createRoute({
  getParentRoute: () => shell,
  path: '/operator',
  component: lazyRouteComponent(() => import('@/routes/operator')),
})
// Every part of src/ui in all its states; no build has it.
const development = import.meta.env.DEV
  ? [
      createRoute({
        getParentRoute: () => shell,
        path: '/dev/ui',
        component: lazyRouteComponent(() => import('./dev-ui/dev-ui'), 'DevUi'),
      }),
    ]
  : []
const custom = createRoute({
  getParentRoute: () => root,
  path: '/custom-infrastructure',
  beforeLoad: () => {
    throw redirect({ to: '/multi-node-clusters', replace: true })
  },
})

const shellPages = [
  auth,
  pods,
  create,
  storage,
  keys,
  teams,
  billing,
  createTeam,
  batch,
  clusters,
  operator,
] as const

/** Makes the router; the prerenderer gives it a history of its own. */
export function makeRouter(history?: RouterHistory) {
  return createRouter({
    routeTree: root.addChildren([index, home, custom, shell.addChildren([...shellPages, ...development])]),
    ...(history ? { history } : {}),
    defaultPreload: 'intent',
    defaultErrorComponent: PageError,
    scrollRestoration: history === undefined,
    // Parameters are texts: the router's own reading would make numbers of ids.
    parseSearch: (text) => Object.fromEntries(new URLSearchParams(text)),
    stringifySearch: (search) => {
      const text = new URLSearchParams(texts(search)).toString()
      return text === '' ? '' : `?${text}`
    },
  })
}

function texts(search: Record<string, unknown>): Search {
  const pairs = Object.entries(search).filter((pair): pair is [string, string] => typeof pair[1] === 'string')
  return Object.fromEntries(pairs)
}

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof makeRouter>
  }
}
