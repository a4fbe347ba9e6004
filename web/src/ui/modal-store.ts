import type { LinkProps } from '@tanstack/react-router'
import { createStore } from '@/lib/store'

export interface ModalAction {
  readonly label: string
  readonly variant?: 'primary' | 'plain' | 'alarm'
  /** Closes the modal first. */
  readonly onClick?: () => void
}

/** The one modal of the page. */
export interface ModalContent {
  readonly title: string
  readonly message: string
  readonly type: 'info' | 'loading' | 'success' | 'error'
  /** A progress of its own in percent; without it a loading modal advances by time. */
  readonly progress?: number
  /** How long a loading modal takes to come to 95 %. */
  readonly duration?: number
  readonly actions?: readonly ModalAction[]
  /** Where its link goes, and what the link says. */
  readonly redirectTo?: NonNullable<LinkProps['to']>
  readonly redirectLabel?: string
}

export const modal = createStore<(ModalContent & { readonly id: number }) | null>(null)
let last = 0

/** Shows a modal in place of the one on show. */
export function openModal(content: ModalContent): void {
  last += 1
  modal.set({ ...content, id: last })
}

export function closeModal(): void {
  modal.set(null)
}
