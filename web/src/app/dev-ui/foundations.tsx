import { DepthLines } from '@/ui/depth-lines'
import { Logo } from '@/ui/logo'
import { Row, Specimen } from './specimen'

const colors = [
  ['ink-0', 'ink-1', 'ink-2', 'ink-3', 'line-1', 'line-2', 'line-3'],
  ['hi', 'mid', 'low'],
  ['beacon', 'beacon-hi', 'beacon-lo', 'on-beacon'],
  ['ready', 'ready-wash', 'tide', 'tide-wash', 'rig', 'rig-wash', 'warn', 'warn-wash'],
  ['danger', 'danger-wash', 'danger-solid', 'on-danger'],
]

const types = ['meta', 'control', 'body', 'lead', 'card', 'title', 'price', 'display']

/** Colours, sizes of type, the mark and the contours. */
export function Foundations() {
  return (
    <>
      <Specimen part="tokens" note="Status is always a dot and a word, never a colour alone.">
        {colors.map((family) => (
          <div key={family[0]} className="dev-swatches">
            {family.map((name) => (
              <div key={name}>
                <span style={{ background: `var(--color-${name})` }} />
                <p className="num text-low text-meta">{name}</p>
              </div>
            ))}
          </div>
        ))}
        <div className="dev-types">
          {types.map((size) => (
            <p
              key={size}
              style={{ font: `500 var(--text-${size}) / var(--text-${size}--line-height) var(--font-sans)` }}
            >
              {size}: one home port, <span className="price">$2.490/hr</span>
            </p>
          ))}
          <p className="num text-control">num: ssh -p 20412 root@9f3c1a77 0O 1l</p>
        </div>
      </Specimen>
      <Specimen part="logo">
        <Row of="16, 22, 36 px">
          <Logo className="size-4 text-hi" />
          <Logo className="size-[22px] text-hi" />
          <Logo className="size-9 text-hi" />
        </Row>
      </Specimen>
      <Specimen part="depth-lines" note="The landing page and empty states only.">
        <div className="card dev-lines">
          <DepthLines className="absolute inset-0 size-full" />
        </div>
      </Specimen>
    </>
  )
}
