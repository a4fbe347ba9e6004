/** Moves the focus to the heading of the page, where a reader of a new page begins. */
export function focusHeading(): void {
  const target = document.querySelector('h1') ?? document.querySelector('main')
  if (target instanceof HTMLElement) target.focus({ preventScroll: true })
}
