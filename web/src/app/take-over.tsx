import { type ReactNode, useInsertionEffect, useLayoutEffect, useRef } from 'react'

/**
 * Puts what was drawn into `fresh` in the place of the prerendered `old`, in one step, and lets the focus stay
 * on the same element: somebody may have pressed Tab before the scripts came.
 */
export function TakeOver({
  old,
  fresh,
  children,
}: {
  old: HTMLElement
  fresh: HTMLElement
  children: ReactNode
}) {
  const held = useRef<number[] | null>(null)
  // Before any layout effect, so that those measure what is in the document.
  useInsertionEffect(() => {
    held.current = pathTo(document.activeElement, old)
    old.replaceWith(fresh)
  }, [old, fresh])
  useLayoutEffect(() => {
    const same = held.current?.reduce<Element | undefined>((at, index) => at?.children[index], fresh)
    held.current = null
    if (same instanceof HTMLElement) same.focus({ preventScroll: true })
  }, [fresh])
  return children
}

/** The steps from one element down to another by their positions, or null if it is not within. */
function pathTo(target: Element | null, within: Element): number[] | null {
  const path: number[] = []
  for (let at = target; at !== within; at = at.parentElement) {
    if (!at?.parentElement) return null
    path.unshift([...at.parentElement.children].indexOf(at))
  }
  return path
}
