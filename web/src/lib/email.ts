const address =
  /^[^\s@"(),:;<>[\]\\]+@[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)+$/

/** The longest e-mail address that can be invited. */
export const maxEmailLength = 255

/** What is wrong with an e-mail address, or null. */
export function emailProblem(email: string): 'required' | 'too_long' | 'malformed' | null {
  const text = email.trim()
  if (text === '') return 'required'
  if (text.length > maxEmailLength) return 'too_long'
  return address.test(text) ? null : 'malformed'
}
