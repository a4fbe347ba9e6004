/** A GPU type as people write it: 'H100_80GB' → 'H100 80GB'. */
export function gpuName(type: string): string {
  return type.replaceAll('_', ' ')
}
