/** Bytes per second of a restore where a pod's network gives 2 Gbit/s: what is promised stands on it. */
const bytesPerSecond = 250e6
/** Getting in, reading the index, making the last folders. */
const overheadSeconds = 5

/** How long a volume takes to be back at /workspace, in whole minutes, 1 at the least; 0 for an empty volume. */
export function restoreMinutes(sizeGb: number): number {
  if (sizeGb <= 0) return 0
  return Math.max(1, Math.ceil(((sizeGb * 1e9) / bytesPerSecond + overheadSeconds) / 60))
}
