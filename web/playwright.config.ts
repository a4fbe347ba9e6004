import { defineConfig } from '@playwright/test'

// The specs start the real binary themselves, one per worker (e2e/fixture.ts): no webServer here.
export default defineConfig({
  testDir: 'e2e',
  testIgnore: 'screenshots/**', // they show, they test nothing: see playwright.screenshots.config.ts
  workers: 1,
  reporter: process.env.CI ? 'line' : 'list',
  timeout: 60_000,
  expect: { timeout: 10_000 },
  use: {
    viewport: { width: 1440, height: 900 },
    trace: 'retain-on-failure',
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
      args: [
        '--no-sandbox',
        '--disable-dev-shm-usage',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
        '--no-first-run',
      ],
    },
  },
})
