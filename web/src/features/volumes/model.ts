/** A volume's size is fixed. */
export const volumeSizeGb = 500
/** USD per stored GB and hour. */
export const pricePerGbHour = 0.0002
/** How many volumes a team without Pro may have. */
export const hobbyVolumes = 1

/** '123/500 GB'; two decimals at most, without trailing zeros. */
export function usedText(sizeGb: number): string {
  return `${Number(sizeGb.toFixed(2))}/${volumeSizeGb} GB`
}

/** '25%': the rounded share of the volume that is used. */
export function usedPercent(sizeGb: number): string {
  return `${Math.round((sizeGb / volumeSizeGb) * 100)}%`
}

/** What a volume costs per hour: what is stored, at the rate. */
export function volumePrice(sizeGb: number): number {
  return sizeGb * pricePerGbHour
}

/** The name that is sent: trimmed, and never empty. */
export function nameOrUntitled(name: string, untitled: string): string {
  return name.trim() || untitled
}

/** Whether the plan allows no further volume. */
export function atVolumeLimit(pro: boolean, volumes: number): boolean {
  return !pro && volumes >= hobbyVolumes
}
