import { clsx } from 'clsx'
import { Check, CircleAlert, X } from 'lucide-react'
import { useSyncExternalStore } from 'react'
import { IconButton } from './button'
import { dismissToast, toasts } from './toast'

/** The region where toasts appear, above everything else. */
export function Toasts({ label, closeLabel }: { label: string; closeLabel: string }) {
  const messages = useSyncExternalStore(toasts.watch, toasts.get, toasts.get)
  return (
    <section
      aria-label={label}
      // Each message is live by its role. The attribute keeps the region heard while a dialog hides the page.
      aria-live="off"
      // Whoever closes a message means no dialog below it.
      onPointerDown={(event) => event.stopPropagation()}
      className="pointer-events-none fixed inset-x-4 bottom-4 z-60 grid grid-cols-1 justify-items-end gap-2 sm:left-auto sm:w-96"
    >
      {messages.map(({ id, tone, text, detail }) => (
        <div
          key={id}
          role={tone === 'danger' ? 'alert' : 'status'}
          className={clsx(
            'pointer-events-auto flex w-full animate-rise items-start gap-3 rounded-card border bg-ink-3 py-2 pr-2 pl-4 text-body text-hi shadow-overlay',
            tone === 'danger' ? 'border-danger/35' : 'border-line-2',
          )}
        >
          <span aria-hidden="true" className="mt-2 shrink-0">
            {tone === 'danger' ? (
              <CircleAlert size={16} className="text-danger" />
            ) : (
              <Check size={16} className="text-ready" />
            )}
          </span>
          <div className="wrap-anywhere min-w-0 flex-1 py-1.5">
            <p>{text}</p>
            {detail ? <p className="text-control text-mid">{detail}</p> : null}
          </div>
          <IconButton label={closeLabel} onClick={() => dismissToast(id)}>
            <X size={15} aria-hidden="true" />
          </IconButton>
        </div>
      ))}
    </section>
  )
}
