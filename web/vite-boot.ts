import { readFileSync } from 'node:fs'
import { type Plugin, transformWithOxc } from 'vite'

const source = 'src/boot.ts'

/**
 * Puts src/boot.ts into the page as a small blocking classic script: it must run before the first paint,
 * and the content security policy allows no inline script.
 */
export function bootScript(): Plugin {
  let code = ''
  let dev = false
  return {
    name: 'homeport-boot',
    config: (_, env) => {
      dev = env.command === 'serve'
    },
    async buildStart() {
      const text = await transformWithOxc(readFileSync(source, 'utf8'), source)
      code = `(()=>{${text.code.replace(/^\s*\/\/.*\n/gm, '')}})()`
      if (!dev && this.environment.name === 'client')
        this.emitFile({ type: 'asset', name: 'boot.js', source: code })
    },
    transformIndexHtml: {
      order: 'post',
      handler(html, ctx) {
        if (dev) return html.replace('<!--boot-->', '<script type="module" src="/src/boot.ts"></script>')
        const name = Object.keys(ctx.bundle ?? {}).find((key) => /(^|\/)boot-[^/]+\.js$/.test(key))
        if (!name) throw new Error('the boot script was not emitted')
        return html.replace('<!--boot-->', `<script src="/${name}"></script>`)
      },
    },
  }
}
