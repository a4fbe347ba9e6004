import { clsx } from 'clsx'
import { type PointerEvent, useEffect, useRef, useState } from 'react'
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
  const swipe = useSwipe((step) => setStage((now) => nextStage(now, step, stages.length)))
  const running = !paused && !still
  // biome-ignore lint/correctness/useExhaustiveDependencies: every change of the stage starts the time anew.
  useEffect(() => {
    if (!running) return
    const timer = setTimeout(() => setStage((now) => nextStage(now, 1, stages.length)), advanceAfter)
    return () => clearTimeout(timer)
  }, [running, stage])
  const step = (by: number) => setStage((now) => nextStage(now, by, stages.length))
  return (
    <section aria-roledescription="carousel" aria-label={copy.landing.demo} className="pt-12">
      <div className="flex items-end gap-2">
        <ol className="hidden flex-1 gap-6 border-line-1 border-b md:flex">
          {stages.map(({ name }, index) => (
            <li key={name}>
              <button
                type="button"
                aria-current={index === stage ? 'step' : undefined}
                onClick={() => setStage(index)}
                className="-mb-px flex min-h-11 items-center gap-2 border-transparent border-b-2 font-medium text-control text-low transition-colors hover:text-hi aria-[current=step]:border-beacon aria-[current=step]:text-hi"
              >
                <span className="price text-low">{index + 1}</span>
                {name}
              </button>
            </li>
          ))}
        </ol>
        <div aria-hidden="true" className="flex gap-1.5 pb-4 md:hidden">
          {stages.map(({ name }, index) => (
            <span
              key={name}
              className={clsx('h-1 w-7 rounded-full', index === stage ? 'bg-beacon' : 'bg-line-1')}
            />
          ))}
        </div>
        <div className="ml-auto flex pb-1">
          <IconButton label={copy.landing.previous} onClick={() => step(-1)}>
            <BackIcon />
          </IconButton>
          <IconButton
            label={paused ? copy.landing.play : copy.landing.pause}
            onClick={() => setPaused(!paused)}
          >
            {paused ? <PlayIcon /> : <PauseIcon />}
          </IconButton>
          <IconButton label={copy.landing.next} onClick={() => step(1)}>
            <OnIcon />
          </IconButton>
        </div>
      </div>
      <div {...swipe} className="card mt-3 touch-pan-y select-none overflow-hidden">
        {stages.map((each, index) => (
          // biome-ignore lint/a11y/useSemanticElements: a slide is no group of form fields.
          <div
            key={each.name}
            role="group"
            aria-roledescription="slide"
            aria-label={copy.landing.stage(index + 1, stages.length)}
            hidden={index !== stage}
            className={clsx(index === stage && 'grid animate-fade grid-cols-1 lg:grid-cols-[4fr_7fr]')}
          >
            <div className="flex min-h-36 flex-col justify-center p-6 lg:min-h-72 lg:p-8">
              <p className="price text-low text-meta">{copy.landing.stage(index + 1, stages.length)}</p>
              <h2 className="mt-1 font-semibold text-title">{each.name}</h2>
              <p className="mt-2 text-lead">{each.text}</p>
            </div>
            <StagePicture stage={index} />
          </div>
        ))}
      </div>
    </section>
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
