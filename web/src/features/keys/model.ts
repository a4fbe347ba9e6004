const shownCharacters = 50

/** The part of a public key that is shown: its first 50 characters, the type among them. */
export function shownKey(publicKey: string): string {
  return publicKey.slice(0, shownCharacters)
}

/** What is wrong with a text given as a public key, or null. A private half must not leave the browser. */
export function keyProblem(text: string): 'required' | 'private' | null {
  if (text.trim() === '') return 'required'
  return text.includes('PRIVATE KEY-----') ? 'private' : null
}
