import type { ReactNode } from 'react'
import './dev-ui.css'

/** One part with its name and what to look for. */
export function Specimen({ part, note, children }: { part: string; note?: string; children: ReactNode }) {
  return (
    <section data-part={part} aria-label={part} className="dev-specimen">
      <header>
        <h2 className="num font-medium text-control">{part}</h2>
        {note ? <p className="text-low text-meta">{note}</p> : null}
      </header>
      <div className="dev-shelf">{children}</div>
    </section>
  )
}

/** States side by side, under a word that names them. */
export function Row({ of, children }: { of: string; children: ReactNode }) {
  return (
    <div className="dev-row">
      <span className="text-low text-meta">{of}</span>
      <div className="dev-states">{children}</div>
    </div>
  )
}
