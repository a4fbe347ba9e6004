// Ends a build: writes landing.html (the prerendered landing page for / and /home) and .vite/landing.html (the
// same with places for the operator's testimonials), keeps index.html as the plain shell of every other path,
// and puts precompressed forms beside every text file.
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

const dist = new URL('../dist/', import.meta.url).pathname
const read = (name) => readFileSync(join(dist, name), 'utf8')
const manifest = JSON.parse(read('.vite/manifest.json'))

const { renderLanding } = await import('../node_modules/.prerender/prerender.js')
const samples = await renderLanding('samples')
const places = await renderLanding('places')
for (const markup of [samples, places]) {
  if (!markup.includes('<h1')) throw new Error('the landing page was not rendered')
  if (/\sstyle="/.test(markup))
    throw new Error('the landing page has a style attribute, which the content security policy forbids')
}
if (!places.includes('@@quote3@@')) throw new Error('the landing page has no places for testimonials')

const fonts = readdirSync(join(dist, 'assets')).filter(
  (name) => name.startsWith('instrument-sans') && name.endsWith('.woff2'),
)
const fontLinks = fonts.map(
  (name) => `<link rel="preload" href="/assets/${name}" as="font" type="font/woff2" crossorigin>`,
)
const config = '<link rel="preload" as="fetch" href="/config.json" crossorigin>'

const shell = read('index.html')
// What the scripts ask for first, by name in the manifest: it must not wait until they run.
const preloads = (...entries) =>
  [...new Set(entries.flatMap((entry) => [...chunksOf(entry)]))]
    .filter((file) => !shell.includes(file))
    .map((file) => `<link rel="modulepreload" href="/${file}">`)
const reactDom = 'node_modules/react-dom/client.js'
const withHead = (html, links) => html.replace('</head>', `${links.join('')}</head>`)
// The pages in the shell have a style sheet of their own, which holds the landing page's too.
const [landingStyles, pageStyles] = ['index.html', 'src/app/shell/shell.tsx'].map(
  (key) => manifest[key].css[0],
)
if (!shell.includes(landingStyles)) throw new Error('the landing page has lost its style sheet')
const plain = shell.replace('<!--app-->', '').replace(landingStyles, pageStyles)
write('index.html', withHead(plain, [...fontLinks, config, ...preloads(reactDom)]))
// The landing page is complete without its scripts: they must not take the line from its font.
const later = (html) =>
  html.replace(
    /<(script type="module"|link rel="modulepreload"|link rel="preload" as="fetch")/g,
    '<$1 fetchpriority="low"',
  )
// Its first painting waits for no second answer: what it needs stands in the document. The server finds the
// elements without attributes and allows exactly their bytes (internal/app/policy.go).
const whole = shell
  .replace(/<script src="\/(assets\/boot-[^"]+)"><\/script>/, (_, file) => within('script', file))
  .replace(/<link rel="stylesheet"[^>]* href="\/([^"]+)">/, (_, file) => within('style', file))
if (!whole.includes('<script>') || !whole.includes('<style>'))
  throw new Error('the landing page lacks its boot script or its style sheet')
const landing = (markup) =>
  later(
    withHead(
      whole.replace('<!--app-->', () => markup),
      [...fontLinks, config, ...preloads(reactDom, 'src/routes/landing.tsx')],
    ),
  )
write('landing.html', landing(samples))
write('.vite/landing.html', landing(places))
writeFileSync(join(dist, '.keep'), '')

for (const name of readdirSync(dist, { recursive: true })) {
  if (/\.(html|js|css|svg|json|txt|wav)$/.test(name) && statSync(join(dist, name)).isFile()) compress(name)
}

// The query cache of the rendered page would keep this process alive for half an hour.
process.exit(0)

/** The files of a chunk and of what it imports. */
function chunksOf(entry, seen = new Set()) {
  const { file, imports = [] } = manifest[entry]
  if (seen.has(file)) return seen
  seen.add(file)
  for (const key of imports) chunksOf(key, seen)
  return seen
}

/** An element that holds a file of the build. */
function within(element, file) {
  const text = read(file).trim()
  if (text.includes('</')) throw new Error(`${file} would end its ${element} element too early`)
  return `<${element}>${text}</${element}>`
}

function write(name, text) {
  writeFileSync(join(dist, name), text)
}

function compress(name) {
  const bytes = readFileSync(join(dist, name))
  if (bytes.length < 512) return
  writeFileSync(join(dist, `${name}.gz`), gzipSync(bytes, { level: 9 }))
  writeFileSync(
    join(dist, `${name}.br`),
    brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }),
  )
}
