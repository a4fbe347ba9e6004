/** A value that is made when it is first asked for: nothing that costs time belongs into the start of a page. */
export function lazy<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}
