import { defineConfig } from '@playwright/test'

// The specs start the real binary themselves, one per worker (e2e/fixture.ts): no webServer here.
export default defineConfig({
  testDir: 'e2e',
  // They show and measure, they test nothing: see the playwright.*.config.ts beside this one.
  testIgnore: ['screenshots/**', 'bench/**'],
  workers: 1,
  reporter: process.env.CI ? 'line' : 'list',
  timeout: 60_000,
  expect: { timeout: 10_000 },
  use: {
    viewport: { width: 1440, height: 900 },
    trace: process.env.TRACE ? 'on' : 'off', // tracing takes as much of a core as the test itself
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
      args: [
        '--no-sandbox',
        '--disable-dev-shm-usage',
        '--disable-gpu',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
        '--no-first-run',
      ],
    },
  },
})
