import tailwind from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vitest/config'
import { bootScript } from './vite-boot.ts'

// The API server of `npm run dev`: a running `bin/homeport serve`.
const server = process.env.HOMEPORT_DEV_SERVER ?? 'http://127.0.0.1:8080'
const proxied = ['/api', '/auth/v1', '/config.json', '/dev', '/test-checkout']

const baseModules =
  /node_modules\/(@tanstack|clsx|class-variance-authority)\/|src\/(api|copy|lib)\/|src\/features\/(session|offers)\/|src\/ui\/(badge|berths|button|button-link|depth-lines|logo|media|meter|page|spinner)\.tsx?$|preload-helper/

export default defineConfig({
  plugins: [react(), tailwind(), bootScript()],
  resolve: { tsconfigPaths: true },
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
            // What every page needs, the landing page among them, in one file: small files compress badly.
            { name: 'base', test: baseModules, minShareCount: 2 },
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
