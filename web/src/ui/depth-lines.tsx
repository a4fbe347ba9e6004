import { clsx } from 'clsx'
import { lazy } from '@/lib/lazy'

const rings = lazy(() => Array.from({ length: 11 }, (_, ring) => contour(ring)))

/** Bathymetric contours, for the landing page and empty states only. */
export function DepthLines({ className }: { className?: string }) {
  return (
    <svg
      aria-hidden="true"
      viewBox="0 0 1440 760"
      preserveAspectRatio="xMidYMid slice"
      fill="none"
      className={clsx('pointer-events-none stroke-tide opacity-16', className)}
    >
      {rings().map((path, ring) => (
        <path
          key={path}
          d={path}
          vectorEffect="non-scaling-stroke"
          strokeDasharray={ring % 4 === 3 ? '2 5' : undefined}
        />
      ))}
    </svg>
  )
}

function contour(ring: number): string {
  const radius = 60 + ring * 62
  const points = Array.from({ length: 72 }, (_, step) => {
    const angle = (step / 72) * Math.PI * 2
    const waved =
      radius * (1 + 0.09 * Math.sin(angle * 3 + ring * 0.42) + 0.05 * Math.cos(angle * 5 - ring * 0.6))
    return `${(900 + waved * 1.35 * Math.cos(angle)).toFixed(0)} ${(330 + waved * 0.8 * Math.sin(angle)).toFixed(0)}`
  })
  return `M${points.join('L')}Z`
}
