import base from './playwright.config'

// `make screenshots` runs this one: it shows the product, it does not test it.
export default { ...base, testDir: 'e2e/screenshots', testIgnore: [], timeout: 300_000 }
