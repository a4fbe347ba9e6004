import base from './playwright.config'

// `make bench` runs this one: it measures the page and leaves one table in HOMEPORT_BENCH_OUT.
export default { ...base, testDir: 'e2e/bench', testIgnore: [], timeout: 900_000 }
