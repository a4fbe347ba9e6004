// Adds up the reports of all test runners in a folder and prints one closing
// line. A runner that left no report counts as one failure.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const dir = process.argv[2]
let passed = 0
let failed = 0

const read = (name) => {
  try {
    return readFileSync(join(dir, name), 'utf8')
  } catch {
    return ''
  }
}

const goOutput = new Map()
let goTests = 0
for (const line of read('go.json').split('\n')) {
  if (!line.startsWith('{')) {
    if (line.trim()) console.log(line)
    continue
  }
  const e = JSON.parse(line)
  const key = `${e.Package ?? e.ImportPath} ${e.Test ?? ''}`
  if (e.Action === 'output' || e.Action === 'build-output') {
    goOutput.set(key, (goOutput.get(key) ?? '') + e.Output)
    continue
  }
  if (e.Action === 'build-fail') {
    console.log(`FAIL to build ${e.ImportPath}\n${goOutput.get(key) ?? ''}`)
    continue
  }
  const top = e.Test && !e.Test.includes('/')
  if (e.Action === 'pass' && top) {
    passed++
    goTests++
  }
  if (e.Action === 'fail') {
    if (top || !e.Test) failed++
    console.log(`FAIL ${key}\n${goOutput.get(key) ?? ''}`)
  }
  if (e.Action === 'skip' && top) console.log(`skipped ${key}`)
}
if (goTests === 0) {
  failed++
  console.log(`FAIL: no Go test ran\n${read('go.err')}`)
}

try {
  const r = JSON.parse(read('vitest.json'))
  passed += r.numPassedTests
  failed += r.numFailedTests + (r.success ? 0 : r.numFailedTests === 0 ? 1 : 0)
} catch {
  failed++
  console.log('FAIL: the web tests left no report')
}

try {
  const r = JSON.parse(read('playwright.json'))
  passed += r.stats.expected
  failed += r.stats.unexpected + r.stats.flaky + r.errors.length
  for (const e of r.errors) console.log(e.message)
} catch {
  failed++
  console.log('FAIL: the browser tests left no report')
}

console.log(`${passed} passed, ${failed} failed`)
process.exit(failed === 0 ? 0 : 1)
