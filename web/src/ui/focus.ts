const dialogs = '[role=dialog], [role=alertdialog]'
let last: HTMLElement | null = null
/** What had it last in a dialog that asks nothing: a question may open above it. */
let lastInDialog: HTMLElement | null = null

/** Follows what has the focus outside of any dialog. Returns the way to stop. */
export function watchFocus(): () => void {
  const remember = ({ target }: FocusEvent) => {
    if (!(target instanceof HTMLElement)) return
    if (!target.closest(dialogs)) last = target
    else if (target.closest('[role=dialog]')) lastInDialog = target
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
  const next = document.querySelector<HTMLElement>(dialogs)
  if (next) {
    // The next one has it, or had it before a question or another form opened above it.
    if (next.contains(lastInDialog)) lastInDialog?.focus()
    else if (!next.contains(document.activeElement)) next.focus()
    return
  }
  for (const each of [last, last?.closest<HTMLElement>('[tabindex="-1"]'), document.querySelector('h1')]) {
    each?.focus()
    if (each === document.activeElement) return
  }
}
