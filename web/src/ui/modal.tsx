import { CircleAlert, CircleCheck, Info } from 'lucide-react'
import { Dialog as Radix } from 'radix-ui'
import { type ReactNode, useEffect, useRef, useState, useSyncExternalStore } from 'react'
import { defaultDuration, progressAt, progressStep, splitToken } from '@/lib/progress'
import { Button } from './button'
import { ButtonLink } from './button-link'
import { Backdrop } from './dialog'
import { giveBackFocus, watchFocus } from './focus'
import { closeModal, type ModalContent, modal } from './modal-store'
import { Spinner } from './spinner'

const closeAfter = 5000

const icons: Record<ModalContent['type'], ReactNode> = {
  info: <Info size={20} className="text-tide" />,
  loading: <Spinner className="size-5 text-beacon" />,
  success: <CircleCheck size={20} className="text-ready" />,
  error: <CircleAlert size={20} className="text-danger" />,
}

/** Shows the page's modal. Mounted once, by the shell. */
export function ModalHost({ closeLabel }: { closeLabel: string }) {
  const content = useSyncExternalStore(modal.watch, modal.get, modal.get)
  useEffect(watchFocus, [])
  // A message that follows a message stays in the same card: the focus need not move.
  const key = content?.actions?.length ? content.id : 'message'
  return (
    <Radix.Root open={content !== null} onOpenChange={(open) => (open ? undefined : closeModal())}>
      <Radix.Portal>
        <Backdrop />
        {content ? <ModalCard key={key} content={content} closeLabel={closeLabel} /> : null}
      </Radix.Portal>
    </Radix.Root>
  )
}

interface ModalCardProps {
  content: ModalContent & { readonly id: number }
  closeLabel: string
}

function ModalCard({ content, closeLabel }: ModalCardProps) {
  const { id, title, type, actions = [], redirectTo, redirectLabel } = content
  const box = useRef<HTMLDivElement>(null)
  const [hovered, setHovered] = useState(false)
  const [focused, setFocused] = useState(false)
  useAutoClose((type === 'success' || type === 'error') && actions.length === 0, hovered || focused, id)
  return (
    <Radix.Content
      ref={box}
      role={actions.length > 0 ? 'alertdialog' : 'dialog'}
      aria-modal="true"
      tabIndex={-1}
      onOpenAutoFocus={(event) => {
        // A message that closes itself must not be held open by the focus it was given on opening.
        if (actions.length > 0) return
        event.preventDefault()
        box.current?.focus()
      }}
      onCloseAutoFocus={giveBackFocus}
      // Not onPointerEnter: a pointer that rests where the modal appears did not come to hold it.
      onPointerMove={() => setHovered(true)}
      onPointerLeave={() => setHovered(false)}
      onFocus={(event) => setFocused(event.target !== box.current)}
      onBlur={() => setFocused(false)}
      className="fixed inset-x-4 inset-y-0 z-50 m-auto h-fit animate-rise rounded-card border border-line-2 bg-ink-2 p-6 shadow-overlay sm:inset-x-0 sm:max-w-[440px]"
    >
      <div className="flex items-center gap-3">
        {actions.length > 0 ? null : <span aria-hidden="true">{icons[type]}</span>}
        <Radix.Title className="font-semibold text-card">{title}</Radix.Title>
      </div>
      <Radix.Description asChild>
        <div className="wrap-anywhere mt-2 text-body text-mid">
          <Message text={content.message} token={actions.length > 0 && title.startsWith('Delete')} />
        </div>
      </Radix.Description>
      {type === 'loading' ? <LoadingBar key={id} content={content} /> : null}
      <div className="mt-6 flex flex-wrap justify-end gap-2">
        {actions.map((action) => (
          <Button
            key={action.label}
            kind={action.variant ?? 'plain'}
            onClick={() => {
              closeModal()
              action.onClick?.()
            }}
          >
            {action.label}
          </Button>
        ))}
        {actions.length === 0 && type !== 'loading' ? (
          <Button onClick={closeModal}>{closeLabel}</Button>
        ) : null}
        {redirectTo && redirectLabel ? (
          <ButtonLink to={redirectTo} kind="primary" onClick={closeModal}>
            {redirectLabel}
          </ButtonLink>
        ) : null}
      </div>
    </Radix.Content>
  )
}

/** A delete question shows what it is about, such as 2xA100_80GB, apart from the sentence. */
function Message({ text, token }: { text: string; token: boolean }) {
  const parts = token ? splitToken(text) : null
  if (!parts) return <p>{text}</p>
  return (
    <p>
      {parts.before}
      <code className="num mx-0.5 rounded-badge border border-line-2 bg-ink-0 px-1.5 py-0.5 text-control text-hi">
        {parts.token}
      </code>
      {parts.after}
    </p>
  )
}

function LoadingBar({ content }: { content: ModalContent }) {
  const [elapsed, setElapsed] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => setElapsed((before) => before + progressStep), progressStep)
    return () => clearInterval(timer)
  }, [])
  const value = content.progress ?? progressAt(elapsed, content.duration ?? defaultDuration)
  return (
    <div
      role="progressbar"
      aria-label={content.title}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(value)}
      className="mt-5 h-1.5 overflow-hidden rounded-full bg-ink-0"
    >
      <div className="h-full rounded-full bg-beacon" style={{ width: `${value}%` }} />
    </div>
  )
}

function useAutoClose(active: boolean, held: boolean, id: number): void {
  // biome-ignore lint/correctness/useExhaustiveDependencies: each message has its own 5 s.
  useEffect(() => {
    if (!active || held) return
    const timer = setTimeout(closeModal, closeAfter)
    return () => clearTimeout(timer)
  }, [active, held, id])
}
