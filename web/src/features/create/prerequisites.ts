/** The least balance that a pod can be created with, in USD. */
export const minimumBalance = 0.01

/** What is still missing before a pod can be created, in the order it is shown. */
export type Missing = 'noVolumes' | 'missingVolume' | 'noKeys' | 'missingKey' | 'funds'

interface Facts {
  /** How many volumes are free, or null while that is unknown. */
  readonly freeVolumes: number | null
  readonly volumeChosen: boolean
  readonly keys: number | null
  readonly keyChosen: boolean
  /** USD, or null while unknown. */
  readonly balance: number | null
}

/** Lists what is missing; what is not known yet is not called missing. */
export function missingFor({ freeVolumes, volumeChosen, keys, keyChosen, balance }: Facts): Missing[] {
  const missing: Missing[] = []
  if (freeVolumes === 0) missing.push('noVolumes')
  else if (freeVolumes !== null && !volumeChosen) missing.push('missingVolume')
  if (keys === 0) missing.push('noKeys')
  else if (keys !== null && !keyChosen) missing.push('missingKey')
  if (balance !== null && balance < minimumBalance) missing.push('funds')
  return missing
}
