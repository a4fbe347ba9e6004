/** A GPU type as people write it: 'H100_80GB' → 'H100 80GB'. */
export function gpuName(type: string): string {
  return type.replaceAll('_', ' ')
}

/** A provider or a kind of security as people write it: 'secure_cloud' → 'Secure cloud'. */
export function nameOf(word: string): string {
  return word === 'runpod' ? 'RunPod' : word.slice(0, 1).toUpperCase() + word.slice(1).replaceAll('_', ' ')
}
