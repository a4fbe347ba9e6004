import { createStore } from '@/lib/store'

export interface ToastMessage {
  readonly id: number
  readonly tone: 'success' | 'danger'
  readonly text: string
  /** A second line: why. */
  readonly detail?: string | undefined
}

/** The messages on show, oldest first. */
export const toasts = createStore<readonly ToastMessage[]>([])
let last = 0

/** Says that something worked; gone by itself. */
export function toast(text: string, milliseconds = 5000): void {
  const id = add('success', text)
  setTimeout(() => dismissToast(id), milliseconds)
}

/** Says that something failed; stays until it is closed. */
export function alertToast(text: string, detail?: string): void {
  add('danger', text, detail)
}

export function dismissToast(id: number): void {
  toasts.set(toasts.get().filter((message) => message.id !== id))
}

function add(tone: ToastMessage['tone'], text: string, detail?: string): number {
  last += 1
  // The same alert twice says nothing new.
  const others = toasts.get().filter((message) => message.text !== text)
  toasts.set([...others, { id: last, tone, text, detail }].slice(-4))
  return last
}
