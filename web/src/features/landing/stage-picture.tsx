import { clsx } from 'clsx'
import type { ReactNode } from 'react'
import { copy } from '@/copy/en'
import { Dot, type Tone } from '@/ui/badge'
import { Berths } from '@/ui/berths'
import { PodIcon, VolumeIcon } from './icons'

interface Scene {
  /** The pod is there. */
  readonly moored: boolean
  readonly tone: Tone
  readonly cable: 'none' | 'laying' | 'taut' | 'busy'
}

const scenes: readonly Scene[] = [
  { moored: false, tone: 'tide', cable: 'none' },
  { moored: true, tone: 'rig', cable: 'laying' },
  { moored: true, tone: 'ready', cable: 'taut' },
  { moored: true, tone: 'ready', cable: 'busy' },
  { moored: false, tone: 'quiet', cable: 'none' },
]

const cables: Record<Scene['cable'], string> = {
  none: 'stroke-line-1 [stroke-dasharray:2_8]',
  laying: 'stroke-rig [stroke-dasharray:6_6] animate-flow',
  taut: 'stroke-ready',
  busy: 'stroke-ready [stroke-dasharray:14_5] animate-flow',
}

/** Pod, cable and volume at one stage, with the line a terminal would show. */
export function StagePicture({ stage }: { stage: number }) {
  const scene = scenes[stage]
  const words = copy.landing.stages[stage]
  if (!scene || !words) return null
  return (
    <div className="flex flex-col justify-center gap-6 border-line-1 border-t bg-ink-0 p-6 lg:border-t-0 lg:border-l lg:p-8">
      <div className="grid grid-cols-[minmax(0,1fr)_minmax(32px,0.7fr)_minmax(0,1fr)] items-center">
        <Berth name={copy.landing.pod} solid={scene.moored} icon={<PodIcon />}>
          <Berths count={scene.moored ? 2 : 0} label={copy.offer.berths(scene.moored ? 2 : 0)} />
        </Berth>
        <svg
          viewBox="0 0 100 40"
          preserveAspectRatio="none"
          aria-hidden="true"
          fill="none"
          className="h-10 w-full"
        >
          <path
            d={scene.cable === 'taut' || scene.cable === 'busy' ? 'M0 20H100' : 'M0 20C30 38 70 38 100 20'}
            strokeWidth="2"
            vectorEffect="non-scaling-stroke"
            className={cables[scene.cable]}
          />
        </svg>
        <Berth name={copy.landing.volumeState} solid icon={<VolumeIcon />}>
          <ul className="flex flex-wrap gap-x-3 text-meta">
            {words.states.map((state) => (
              <li key={state} className="flex h-3.5 items-center gap-1.5 text-mid">
                <Dot tone={scene.tone} />
                {state}
              </li>
            ))}
          </ul>
        </Berth>
      </div>
      <p className="num wrap-anywhere rounded-control border border-line-1 bg-ink-1 px-4 py-2.5 text-control text-hi">
        <span aria-hidden="true" className="text-beacon">
          {'> '}
        </span>
        {words.line}
      </p>
    </div>
  )
}

function Berth({
  name,
  solid,
  icon,
  children,
}: {
  name: string
  solid: boolean
  icon: ReactNode
  children: ReactNode
}) {
  return (
    <div
      className={clsx(
        'grid min-h-24 grid-cols-1 content-between gap-3 rounded-card border p-4',
        solid ? 'border-line-2 bg-ink-2 text-hi' : 'border-line-2 border-dashed text-low',
      )}
    >
      <span className="flex items-center gap-2 font-medium text-body">
        {icon}
        {name}
      </span>
      {children}
    </div>
  )
}
