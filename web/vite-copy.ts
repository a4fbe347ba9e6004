import { readFileSync } from 'node:fs'
import { type Plugin, parseAst, transformWithOxc } from 'vite'

const source = /\/src\/copy\/en\.ts$/
const part = /\/src\/copy\/en\.ts\?(\w+)$/

/**
 * All texts stand in one file for their readers; a page of the built application loads its own groups only.
 * The file becomes a list of modules, one for each group, which the bundler places like any other.
 */
export function copyByGroup(): Plugin {
  return {
    name: 'homeport-copy',
    apply: 'build',
    load: {
      filter: { id: /\/src\/copy\/en\.ts/ },
      async handler(id) {
        const group = part.exec(id)?.[1]
        if (!group && !source.test(id)) return
        const file = id.replace(/\?.*/, '')
        const { code } = await transformWithOxc(readFileSync(file, 'utf8'), file)
        const groups = groupsOf(code)
        if (group === 'groups') {
          return [...groups.keys()].map((key) => `export { ${key} } from '${file}?${key}'`).join('\n')
        }
        if (group) return `export const ${group} = ${groups.get(group)}`
        return `import * as copy from '${file}?groups'\nexport { copy }`
      },
    },
    transform: {
      // `const { pods } = copy` takes every group along, into whatever loads it.
      filter: { id: /\/src\/.*\.tsx?$/, code: /\}\s*=\s*copy\b(?!\.)/ },
      handler(_code, id) {
        this.error(`copy: write copy.group instead of taking it apart, in ${id}`)
      },
    },
  }
}

/** The properties of the one object that the file exports, each as it is written. */
function groupsOf(code: string): Map<string, string> {
  const [statement, ...others] = parseAst(code).body
  const declaration = statement?.type === 'ExportNamedDeclaration' ? statement.declaration : null
  const object = declaration?.type === 'VariableDeclaration' ? declaration.declarations[0]?.init : null
  if (object?.type !== 'ObjectExpression' || others.length > 0)
    throw new Error('copy: one object is expected')
  return new Map(
    object.properties.map((property) => {
      if (property.type !== 'Property' || property.key.type !== 'Identifier')
        throw new Error('copy: every group has a plain name')
      return [property.key.name, code.slice(property.value.start, property.value.end)]
    }),
  )
}
