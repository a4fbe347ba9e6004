import { clsx } from 'clsx'
import { type KeyboardEvent, type PointerEvent, useEffect, useRef, useState } from 'react'
import { copy } from '@/copy/en'
import { IconButton } from '@/ui/button'
import { useMedia } from '@/ui/media'
import { BackIcon, OnIcon, PauseIcon, PlayIcon } from './icons'
import { nextStage, swipeStep } from './model'
import { StagePicture } from './stage-picture'

const advanceAfter = 5000
const { stages } = copy.landing

/** The five stages of a pod and its volume; goes on every five seconds until somebody stops it. */
export function Carousel() {
  const [stage, setStage] = useState(0)
  const [paused, setPaused] = useState(false)
  const still = useMedia('(prefers-reduced-motion: reduce)')
  const running = !paused && !still
  const step = (by: number) => setStage((now) => nextStage(now, by, stages.length))
  const swipe = useSwipe(step)
  // biome-ignore lint/correctness/useExhaustiveDependencies: every change of the stage starts the time anew.
  useEffect(() => {
    if (!running) return
    const timer = setTimeout(() => setStage((now) => nextStage(now, 1, stages.length)), advanceAfter)
    return () => clearTimeout(timer)
  }, [running, stage])
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'ArrowRight') step(1)
    if (event.key === 'ArrowLeft') step(-1)
  }
  return (
    <section
      aria-roledescription="carousel"
      aria-label={copy.landing.demo}
      className="pt-12"
      onKeyDown={onKeyDown}
    >
      <div className="flex items-end gap-2 border-line-1 md:border-b">
        <ol className="hidden flex-1 gap-6 md:flex">
          {stages.map(({ name }, index) => (
            <li key={name}>
              <button
                type="button"
                aria-current={index === stage ? 'step' : undefined}
                onClick={() => setStage(index)}
                className="relative -mb-px flex min-h-11 items-center gap-2 font-medium text-control text-low transition-colors hover:text-hi aria-[current=step]:text-hi"
              >
                <span className="price text-low">{index + 1}</span>
                {name}
                {index === stage ? (
                  <Elapsing running={running} className="absolute inset-x-0 bottom-0" />
                ) : null}
              </button>
            </li>
          ))}
        </ol>
        <div aria-hidden="true" className="flex gap-1.5 pb-4 md:hidden">
          {stages.map(({ name }, index) => (
            <span key={name} className="h-0.5 w-7 bg-line-2">
              {index === stage ? <Elapsing running={running} className="block" /> : null}
            </span>
          ))}
        </div>
        <div className="-mr-2 ml-auto flex md:mr-0 md:pb-1">
          <IconButton label={copy.landing.previous} onClick={() => step(-1)}>
            <BackIcon />
          </IconButton>
          {still ? null : (
            <IconButton
              label={paused ? copy.landing.play : copy.landing.pause}
              onClick={() => setPaused(!paused)}
            >
              {paused ? <PlayIcon /> : <PauseIcon />}
            </IconButton>
          )}
          <IconButton label={copy.landing.next} onClick={() => step(1)}>
            <OnIcon />
          </IconButton>
        </div>
      </div>
      {/* All stages lie in one place, so that the page keeps its height. */}
      <div
        {...swipe}
        aria-live={running ? 'off' : 'polite'}
        className="card relative mt-4 grid touch-pan-y select-none grid-cols-1 overflow-hidden"
      >
        <HarbourLight />
        {stages.map((each, index) => (
          // biome-ignore lint/a11y/useSemanticElements: a slide is no group of form fields.
          <div
            key={each.name}
            role="group"
            aria-roledescription="slide"
            aria-label={copy.landing.stage(index + 1, stages.length)}
            className={clsx(
              'col-start-1 row-start-1 grid grid-cols-1 grid-rows-[auto_1fr] transition-[opacity,visibility] duration-400 lg:grid-cols-[4fr_7fr] lg:grid-rows-1',
              index !== stage && 'invisible opacity-0',
            )}
          >
            <div className="flex min-h-50 flex-col p-5 sm:min-h-39 sm:p-6 lg:justify-center lg:p-8">
              <p className="price text-low text-meta">{copy.landing.stage(index + 1, stages.length)}</p>
              <h2 className="mt-1.5 font-semibold text-title lg:text-price">{each.name}</h2>
              <p className="mt-2 text-pretty text-lead">{each.text}</p>
            </div>
            <StagePicture stage={index} shown={index === stage} />
          </div>
        ))}
      </div>
    </section>
  )
}

/** A line that fills in the time a stage has. */
function Elapsing({ running, className }: { running: boolean; className: string }) {
  return (
    <span
      aria-hidden="true"
      className={clsx('h-0.5 origin-left bg-beacon', className, running && 'animate-fill')}
    />
  )
}

/** Rings of light around the home port, behind every stage. */
function HarbourLight() {
  return (
    <svg
      aria-hidden="true"
      viewBox="0 0 700 360"
      preserveAspectRatio="xMaxYMid slice"
      fill="none"
      className="pointer-events-none absolute inset-y-0 right-0 h-full w-full stroke-tide opacity-16 lg:w-7/11"
    >
      {[70, 130, 190, 250, 310, 370, 430, 490].map((radius) => (
        <circle key={radius} cx="560" cy="130" r={radius} vectorEffect="non-scaling-stroke" />
      ))}
    </svg>
  )
}

function useSwipe(onStep: (step: -1 | 1) => void) {
  const start = useRef<number | null>(null)
  return {
    onPointerDown: (event: PointerEvent) => {
      start.current = event.clientX
    },
    onPointerUp: (event: PointerEvent) => {
      const step = start.current === null ? 0 : swipeStep(event.clientX - start.current)
      start.current = null
      if (step !== 0) onStep(step)
    },
    onPointerCancel: () => {
      start.current = null
    },
  }
}
