const swipeThreshold = 50

/** The stage after a step, round and round. */
export function nextStage(stage: number, step: number, stages: number): number {
  return (stage + step + stages) % stages
}

/** What a horizontal drag means: left goes on, right goes back, a short one does nothing. */
export function swipeStep(distance: number): -1 | 0 | 1 {
  if (Math.abs(distance) < swipeThreshold) return 0
  return distance < 0 ? 1 : -1
}
