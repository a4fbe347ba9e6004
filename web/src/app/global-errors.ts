/** Errors that nobody handled are logged and go no further; the page stays as it is. */
export function installGlobalErrors(): void {
  window.addEventListener('error', (event) => {
    console.error('unhandled error', event.error ?? event.message)
    event.preventDefault()
  })
  window.addEventListener('unhandledrejection', (event) => {
    console.error('unhandled rejection', event.reason)
    event.preventDefault()
  })
}
