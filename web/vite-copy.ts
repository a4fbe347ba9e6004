import type { Plugin } from 'vite'

/** Keeps the texts apart: a page of the built application loads its own groups of them only. */
export function copyByGroup(): Plugin {
  return {
    name: 'homeport-copy',
    apply: 'build',
    transform: {
      // `const { pods } = copy` takes every group along, into whatever loads it.
      filter: { id: /\/src\/.*\.tsx?$/, code: /\}\s*=\s*copy\b(?!\.)/ },
      handler(_code, id) {
        this.error(`copy: write copy.group instead of taking it apart, in ${id}`)
      },
    },
  }
}
