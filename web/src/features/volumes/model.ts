import type { Volume } from '@/api/types'

/** A volume's size is fixed. */
export const volumeSizeGb = 500
/** USD per stored GB and hour. */
export const pricePerGbHour = 0.0002
/** Of the quota, in percent: from where a volume is nearly full, and up to where it is synced while a pod runs. */
const nearlyFull = 90
const uploadsEnd = 105
/** How many volumes a team without Pro may have. */
export const hobbyVolumes = 1

/** '123/500 GB'; two decimals at most, without trailing zeros. */
export function usedText(sizeGb: number): string {
  return `${Number(sizeGb.toFixed(2))}/${volumeSizeGb} GB`
}

/** '25%': the rounded share of the volume that is used. */
export function usedPercent(sizeGb: number): string {
  return `${Math.round(percentOf(sizeGb))}%`
}

/** What a volume costs per hour: what is stored, at the rate. */
export function volumePrice(sizeGb: number): number {
  return sizeGb * pricePerGbHour
}

/** What restoring a volume costs: its time in the trash at its price, in USD, rounded up to 4 decimals. */
export function trashCost(sizeGb: number, deletedAt: string, now: number): number {
  const hours = Math.max(0, now - Date.parse(deletedAt)) / 3_600_000
  // The small subtrahend undoes the binary fraction of 123 * 0.0002 * 24.
  return Math.max(0, Math.ceil(volumePrice(sizeGb) * hours * 10_000 - 1e-6)) / 10_000
}

/** The name that is sent: trimmed, and never empty. */
export function nameOrUntitled(name: string, untitled: string): string {
  return name.trim() || untitled
}

/** Whether the plan allows no further volume. */
export function atVolumeLimit(pro: boolean, volumes: number): boolean {
  return !pro && volumes >= hobbyVolumes
}

/** Whether one of the volumes will lock itself: it has a key of its own, is open and no pod holds it. */
export function someWillLock(
  volumes: readonly Pick<Volume, 'team_key' | 'locked' | 'currently_used'>[] | undefined,
): boolean {
  return (volumes ?? []).some((volume) => volume.team_key && !volume.locked && !volume.currently_used)
}

/** What the owner of a volume should know about its quota, or null. */
export function quotaWarning(sizeGb: number): 'near' | 'full' | 'over' | null {
  const percent = percentOf(sizeGb)
  if (percent > uploadsEnd) return 'over'
  if (percent >= 100) return 'full'
  return percent >= nearlyFull ? 'near' : null
}

/** Multiplied first: 512.5 of 500 is 102.5 %, where the quotient would be a hair below. */
function percentOf(sizeGb: number): number {
  return (sizeGb * 100) / volumeSizeGb
}
