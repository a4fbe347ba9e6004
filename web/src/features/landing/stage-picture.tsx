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
  readonly cable: Cable
  /** Something is under way. */
  readonly moving: boolean
}
type Cable = 'none' | 'laying' | 'taut' | 'busy'

const scenes: readonly Scene[] = [
  { moored: false, tone: 'beacon', cable: 'none', moving: true },
  { moored: true, tone: 'rig', cable: 'laying', moving: true },
  { moored: true, tone: 'ready', cable: 'taut', moving: false },
  { moored: true, tone: 'ready', cable: 'busy', moving: true },
  { moored: false, tone: 'quiet', cable: 'none', moving: false },
]

const stateTones: Record<string, Tone> = {
  disconnected: 'quiet',
  connecting: 'tide',
  mounting: 'rig',
  mounted: 'ready',
  active: 'ready',
  syncing: 'tide',
}

/** Pod, cable and volume at one stage, with what a terminal would show. It moves only while it is seen. */
export function StagePicture({ stage, shown }: { stage: number; shown: boolean }) {
  const scene = scenes[stage]
  const words = copy.landing.stages[stage]
  if (!scene || !words) return null
  const beat = shown && scene.moving ? 'animate-beat' : ''
  return (
    <div className="relative flex flex-col justify-center gap-5 border-line-1 border-t p-5 sm:p-6 lg:border-t-0 lg:border-l lg:p-8">
      <div className="grid grid-cols-[minmax(0,1fr)_minmax(26px,.62fr)_minmax(0,1fr)] items-end">
        <Berth place={words.cloud} name={copy.landing.pod} solid={scene.moored} icon={<PodIcon />}>
          <Berths count={scene.moored ? 2 : 0} label={copy.offer.berths(scene.moored ? 2 : 0)} />
          <span className={clsx('num text-meta', scene.moored ? 'text-mid' : 'text-low')}>
            {copy.landing.podSpec}
          </span>
          <State tone={scene.tone} className={beat}>
            {words.pod}
          </State>
        </Berth>
        <CableLine kind={scene.cable} moving={shown} />
        <Berth place={copy.landing.homePort} name={copy.landing.volumeState} solid icon={<VolumeIcon />}>
          <span aria-hidden="true" className="my-1 h-1.5 rounded-full bg-line-1">
            <span className="block h-full w-1/4 rounded-full bg-ready" />
          </span>
          <span className="num text-meta text-mid">{copy.landing.volumeSize}</span>
          <span className="flex flex-wrap gap-x-3">
            {words.states.map((state) => (
              <State key={state} tone={stateTones[state] ?? 'quiet'} className={beat}>
                {state}
              </State>
            ))}
          </span>
        </Berth>
      </div>
      <Terminal title={words.shell} lines={words.lines} />
    </div>
  )
}

function State({ tone, className, children }: { tone: Tone; className: string; children: ReactNode }) {
  return (
    <span className="inline-flex items-center gap-1.5 text-meta text-mid">
      <Dot tone={tone} className={className} />
      {children}
    </span>
  )
}

function Berth({
  place,
  name,
  solid,
  icon,
  children,
}: {
  place: string
  name: string
  solid: boolean
  icon: ReactNode
  children: ReactNode
}) {
  return (
    <div>
      <p className="mb-2 text-low text-meta">{place}</p>
      <div
        className={clsx(
          'grid min-h-38 grid-cols-1 sm:min-h-34 content-start gap-2 rounded-card border border-line-2 p-3.5 sm:p-4',
          solid ? 'bg-ink-2 text-hi' : 'border-dashed bg-ink-0 text-low',
        )}
      >
        <span className="mb-1 flex items-center gap-2 font-medium text-body">
          {icon}
          {name}
        </span>
        {children}
      </div>
    </div>
  )
}

const strokes: Record<Exclude<Cable, 'none'>, string> = {
  laying: 'stroke-rig [stroke-dasharray:7_12]',
  taut: 'stroke-ready',
  busy: 'stroke-tide [stroke-dasharray:3_16] [stroke-width:4px]',
}

/** From the pod to the volume; files travel to the pod while it is laid, and home while it is busy. */
function CableLine({ kind, moving }: { kind: Cable; moving: boolean }) {
  const sagging = kind === 'laying' ? 'M100 50C70 78 30 78 0 50' : 'M0 50H100'
  const tied = kind !== 'none'
  return (
    <div className="relative h-38 sm:h-34">
      <svg
        viewBox="0 0 100 100"
        preserveAspectRatio="none"
        aria-hidden="true"
        className="size-full"
        fill="none"
      >
        {tied ? (
          <path d={sagging} className="stroke-line-2" strokeWidth="2" vectorEffect="non-scaling-stroke" />
        ) : (
          <path
            d="M100 50C82 50 86 82 66 82"
            className="stroke-line-2"
            strokeWidth="2"
            strokeLinecap="round"
            vectorEffect="non-scaling-stroke"
          />
        )}
        {tied ? (
          <path
            d={sagging}
            strokeWidth="2"
            strokeLinecap="round"
            vectorEffect="non-scaling-stroke"
            className={clsx(strokes[kind], moving && kind !== 'taut' && 'animate-flow')}
          />
        ) : null}
      </svg>
      {tied ? <Plug className="-left-1" /> : null}
      <Plug className="-right-1" />
      {tied ? (
        <span className="num absolute inset-x-0 top-[calc(50%-26px)] hidden text-center text-low text-meta lg:block">
          {copy.landing.workspace}
        </span>
      ) : null}
    </div>
  )
}

function Plug({ className }: { className: string }) {
  return (
    <span
      aria-hidden="true"
      className={clsx(
        'absolute top-[calc(50%-4px)] size-2 rounded-full border-2 border-low bg-ink-1',
        className,
      )}
    />
  )
}

function Terminal({ title, lines }: { title: string; lines: readonly string[] }) {
  const typed = lines.some((line) => line.startsWith('$ '))
  return (
    <div className="num overflow-hidden rounded-control border border-line-1 bg-ink-0 text-control">
      <p className="border-line-1 border-b bg-ink-1 px-4 py-1.5 text-low text-meta">{title}</p>
      <ol className="wrap-anywhere px-4 py-3">
        {lines.map((line, index) => (
          <li
            key={line}
            className={clsx('whitespace-pre-wrap', index < lines.length - 1 ? 'text-mid' : 'text-hi')}
          >
            {typed && !line.startsWith('$ ') ? null : (
              <span aria-hidden="true" className={typed ? 'text-beacon' : 'text-low'}>
                {typed ? '$ ' : '> '}
              </span>
            )}
            {line.replace('$ ', '')}
          </li>
        ))}
      </ol>
    </div>
  )
}
