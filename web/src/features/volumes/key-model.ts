/** Draws a key for a volume: 256 random bits as text. It is the password of the volume's repository. */
export function newKey(): string {
  return keyOf(crypto.getRandomValues(new Uint8Array(32)))
}

/** 32 bytes as a key: base64url without padding behind its mark. */
export function keyOf(bytes: Uint8Array): string {
  const text = btoa(String.fromCharCode(...bytes))
  return `hpk_${text.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')}`
}

/** Whether a text may be the key of some volume. */
export function isKey(text: string): boolean {
  return /^hpk_[\w-]{43}$/.test(text)
}

const longestName = 50

/** The name of the file for a volume's key: nothing that a file system forbids, and no longer than any allows. */
export function keyFileName(volume: string): string {
  const allowed = volume.replace(/[^\p{L}\p{M}\p{N}._-]+/gu, '-')
  const name = [...allowed].slice(0, longestName).join('')
  return `homeport-key-${name.replace(/^[-.]+|[-.]+$/g, '') || 'volume'}.txt`
}
