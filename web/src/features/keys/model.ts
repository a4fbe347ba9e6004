const shownCharacters = 50

/** The part of a public key that is shown: its first 50 characters, the type among them. */
export function shownKey(publicKey: string): string {
  return publicKey.slice(0, shownCharacters)
}
