// Holds the build to its budgets, from Vite's manifest: gzipped bytes of what each page loads first.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'

const kB = 1000
const budget = { landing: 125 * kB, page: 190 * kB, chunk: 25 * kB, css: 8 * kB, pageCss: 12 * kB }
const dist = new URL('../dist/', import.meta.url).pathname
const manifest = JSON.parse(readFileSync(join(dist, '.vite/manifest.json'), 'utf8'))
const sizes = new Map()
let failed = 0

const entry = closure('node_modules/react-dom/client.js', closure('index.html'))
const shell = closure('src/app/shell/shell.tsx', entry)
const auth = closure(Object.keys(manifest).find((key) => key.includes('@supabase/auth-js')) ?? '', new Set())
const routes = Object.keys(manifest).filter((key) => key.startsWith('src/routes/'))

const styles = (keys) => total([...keys].flatMap((key) => manifest[key].css ?? []))
check('styles of the landing page', styles(entry), budget.css)
check('styles of the pages', styles(['src/app/shell/shell.tsx']), budget.pageCss)
for (const route of routes) {
  const own = closure(route, route.endsWith('/landing.tsx') ? entry : shell)
  const landing = route.endsWith('/landing.tsx')
  const first = new Set([...own, ...(landing ? [] : auth)])
  check(`${route}: first load`, total(files(first)), landing ? budget.landing : budget.page)
  check(`${route}: own chunk`, total([manifest[route].file]), budget.chunk)
}
process.exitCode = failed > 0 ? 1 : 0

function closure(key, before = new Set(), seen = new Set(before)) {
  if (!manifest[key] || seen.has(key)) return seen
  seen.add(key)
  for (const next of manifest[key].imports ?? []) closure(next, before, seen)
  return seen
}

function files(keys) {
  return [...keys].map((key) => manifest[key].file).filter((file) => file.endsWith('.js'))
}

function total(names) {
  return names.reduce((sum, name) => sum + gzipped(name), 0)
}

function gzipped(name) {
  if (!sizes.has(name)) sizes.set(name, gzipSync(readFileSync(join(dist, name)), { level: 9 }).length)
  return sizes.get(name)
}

function check(what, bytes, most) {
  const over = bytes > most
  if (over) failed += 1
  console.log(
    `${over ? 'OVER' : 'ok  '} ${(bytes / kB).toFixed(1).padStart(6)} of ${(most / kB).toFixed(0)} kB  ${what}`,
  )
}
