import tailwind from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vitest/config'
import { bootScript } from './vite-boot.ts'
import { copyByGroup } from './vite-copy.ts'

// The API server of `npm run dev`: a running `bin/homeport serve`.
const server = process.env.HOMEPORT_DEV_SERVER ?? 'http://127.0.0.1:8080'
// /dev/ui is the page's own: every part of src/ui in all its states (src/app/dev-ui).
const proxied = ['/api', '/auth/v1', '/config.json', '^/dev/(?!ui\\b)', '/test-checkout']

// What the landing page loads and other pages load too. Nothing belongs here that the landing page can do
// without: its budget pays for it.
const base = [
  /node_modules\/(@tanstack|clsx|class-variance-authority|use-sync-external-store)\/(?!.*(useMutation|mutationObserver)\.js)/,
  /preload-helper/,
  /src\/app\/[\w-]+\.tsx?$/,
  /src\/api\/(client|config|error|session)\.ts$/,
  /src\/copy\/en\/(app|offer)\.ts$/,
  /src\/features\/(session|offers)\//,
  /src\/lib\/(cookie|gpu|lazy|level|money|offers|redirect|storage|store)\.ts$/,
  /src\/ui\/(badge|berths|button|button-link|depth-lines|logo|media|meter|page|spinner)\.tsx?$/,
]

export default defineConfig({
  plugins: [react(), tailwind(), bootScript(), copyByGroup()],
  resolve: {
    tsconfigPaths: true,
    // React has this hook itself since 18: without the one for older ones.
    alias: { 'use-sync-external-store/shim/with-selector': 'use-sync-external-store/with-selector' },
  },
  server: { proxy: Object.fromEntries(proxied.map((path) => [path, server])) },
  build: {
    target: 'es2022',
    // Tailwind 4 needs these anyway; without it every colour is written twice.
    cssTarget: ['chrome111', 'firefox128', 'safari16.4'],
    manifest: true,
    cssMinify: 'lightningcss',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            { name: 'react', test: /node_modules\/(react|react-dom|scheduler)\// },
            // In one file: small files compress badly.
            { name: 'base', test: (id) => base.some((pattern) => pattern.test(id)) },
          ],
        },
      },
    },
  },
  test: {
    // A test that draws something says so: @vitest-environment jsdom. The rules need no browser.
    environment: 'node',
    globals: false,
    include: ['src/**/*.test.{ts,tsx}'],
    pool: 'threads',
    maxWorkers: 2,
  },
})
