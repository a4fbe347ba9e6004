const dialogs = '[role=dialog], [role=alertdialog]'
let last: Element | null = null

/** Follows what has the focus outside of any dialog. Returns the way to stop. */
export function watchFocus(): () => void {
  const remember = ({ target }: FocusEvent) => {
    if (target instanceof Element && !target.closest(dialogs)) last = target
  }
  document.addEventListener('focusin', remember)
  return () => document.removeEventListener('focusin', remember)
}

/**
 * Gives the focus back to what had it last outside of any dialog, when one closes. The primitives would give it
 * to a trigger of theirs only, and a message may follow on a form that is gone by then. What cannot take it, such
 * as the button of a deleted row, hands it on to what it stood in, or to the page's title.
 */
export function giveBackFocus(event: Event): void {
  event.preventDefault()
  if (document.querySelector(dialogs)) return // the next one has it
  for (const each of [last, last?.closest('[tabindex="-1"]'), document.querySelector('h1')]) {
    if (!(each instanceof HTMLElement)) continue
    each.focus()
    if (document.activeElement === each) return
  }
}
