import { clsx } from 'clsx'
import { X } from 'lucide-react'
import { Dialog as Radix } from 'radix-ui'
import { type ReactNode, useRef } from 'react'
import { IconButton } from './button'
import { giveBackFocus } from './focus'

interface DialogProps {
  open: boolean
  onClose: () => void
  title: string
  closeLabel: string
  description?: string
  children: ReactNode
  width?: keyof typeof widths
  /** Work is under way: nothing closes it until its end can be told in it. */
  busy?: boolean
}

const widths = { narrow: 'sm:max-w-110', wide: 'sm:max-w-140', widest: 'sm:max-w-230' }

/** A modal dialog: focus inside, Esc and the backdrop close it, focus goes back to what opened it. */
export function Dialog({
  open,
  onClose,
  title,
  closeLabel,
  description,
  children,
  width = 'narrow',
  busy = false,
}: DialogProps) {
  const box = useRef<HTMLDivElement>(null)
  return (
    <Radix.Root open={open} onOpenChange={(next) => (next || busy ? undefined : onClose())}>
      <Radix.Portal>
        <Backdrop />
        <Radix.Content
          ref={box}
          aria-modal="true"
          onOpenAutoFocus={(event) => {
            // A form begins with its first field, not with the close button above it.
            const field = box.current?.querySelector<HTMLElement>('input, textarea')
            if (!field) return
            event.preventDefault()
            field.focus()
          }}
          onCloseAutoFocus={giveBackFocus}
          {...(description ? {} : { 'aria-describedby': undefined })}
          className={clsx(
            'fixed inset-x-0 bottom-0 z-50 max-h-[92dvh] animate-rise overflow-y-auto rounded-t-card border border-line-2 bg-ink-2 p-5 shadow-overlay sm:inset-0 sm:m-auto sm:h-fit sm:w-[calc(100%-48px)] sm:rounded-card sm:p-6',
            widths[width],
          )}
        >
          <div className="flex items-start gap-4">
            <div className="wrap-anywhere min-w-0 flex-1">
              <Radix.Title className="font-semibold text-card">{title}</Radix.Title>
              {description ? (
                <Radix.Description className="mt-1 text-body">{description}</Radix.Description>
              ) : null}
            </div>
            <Radix.Close asChild>
              <IconButton label={closeLabel} disabled={busy} className="-mt-1 -mr-2">
                <X size={16} aria-hidden="true" />
              </IconButton>
            </Radix.Close>
          </div>
          <div className="mt-5">{children}</div>
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  )
}

/**
 * Darkens the page and stops it from scrolling through a rule in base.css. Radix' own overlay would inject a
 * <style> element, which the content security policy forbids.
 */
export function Backdrop() {
  return <div aria-hidden="true" data-scroll-lock className="fixed inset-0 z-40 animate-fade bg-ink-0/75" />
}
