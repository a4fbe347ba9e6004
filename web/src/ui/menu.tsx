import { clsx } from 'clsx'
import {
  createContext,
  type KeyboardEvent,
  type ReactNode,
  useContext,
  useEffect,
  useId,
  useRef,
  useState,
} from 'react'

const CloseContext = createContext<() => void>(() => undefined)

interface MenuProps {
  label: string
  /** The look and content of the button. */
  triggerClass: string
  trigger: ReactNode
  children: ReactNode
  /** A line below the items. */
  note?: string
}

/**
 * A menu above its button, with arrow keys, Home, End and Esc. Our own: the one of the primitives brings a
 * positioning engine that weighs more than all the rest of the shell.
 */
export function Menu({ label, triggerClass, trigger, note, children }: MenuProps) {
  const [open, setOpen] = useState(false)
  const box = useRef<HTMLDivElement>(null)
  const button = useRef<HTMLButtonElement>(null)
  const id = useId()
  const close = () => {
    setOpen(false)
    button.current?.focus()
  }
  useEffect(() => {
    if (!open) return
    const items = itemsOf(box.current)
    const chosen = items.find((item) => item.ariaChecked === 'true') ?? items[0]
    chosen?.focus()
    const leave = (event: Event) => {
      if (event.target instanceof Node && !box.current?.contains(event.target)) setOpen(false)
    }
    document.addEventListener('pointerdown', leave)
    document.addEventListener('focusin', leave)
    return () => {
      document.removeEventListener('pointerdown', leave)
      document.removeEventListener('focusin', leave)
    }
  }, [open])
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape') {
      event.stopPropagation()
      close()
      return
    }
    const items = itemsOf(box.current)
    const next = target(
      event.key,
      items.findIndex((item) => item.matches(':focus')),
      items.length,
    )
    if (next === null) return
    event.preventDefault()
    items[next]?.focus()
  }
  return (
    <div ref={box} className="relative">
      <button
        ref={button}
        type="button"
        aria-haspopup="menu"
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        onClick={() => setOpen(!open)}
        className={triggerClass}
      >
        {trigger}
      </button>
      {open ? (
        <div className="absolute inset-x-0 bottom-full z-50 mb-1.5 max-h-[60dvh] animate-fade overflow-y-auto rounded-card border border-line-2 bg-ink-3 p-1.5 shadow-overlay">
          <div id={id} role="menu" tabIndex={-1} aria-label={label} onKeyDown={onKeyDown}>
            <CloseContext value={close}>{children}</CloseContext>
          </div>
          {note ? (
            <p
              title={note}
              className="mt-1.5 truncate border-line-2 border-t px-2.5 pt-2.5 pb-1.5 text-low text-meta"
            >
              {note}
            </p>
          ) : null}
        </div>
      ) : null}
    </div>
  )
}

interface MenuItemProps {
  onSelect: () => void
  /** The item of a group of choices that holds now. */
  checked?: boolean
  children: ReactNode
}

export function MenuItem({ onSelect, checked, children }: MenuItemProps) {
  const close = useContext(CloseContext)
  return (
    <button
      type="button"
      {...(checked === undefined ? { role: 'menuitem' } : { role: 'menuitemradio', 'aria-checked': checked })}
      tabIndex={-1}
      onClick={() => {
        close()
        onSelect()
      }}
      className={clsx(
        'flex min-h-9 w-full items-center gap-2.5 rounded-control px-2.5 text-left text-control text-hi',
        'hover:bg-ink-1 focus:bg-ink-1 pointer-coarse:min-h-11',
      )}
    >
      {children}
    </button>
  )
}

export function MenuLine() {
  return <hr className="mx-1 my-1.5 border-line-2" />
}

function itemsOf(box: HTMLElement | null): HTMLElement[] {
  return [...(box?.querySelectorAll<HTMLElement>('[role^=menuitem]') ?? [])]
}

/** Which item a key goes to, or null for a key that goes nowhere. */
function target(key: string, at: number, items: number): number | null {
  if (key === 'ArrowDown') return (at + 1) % items
  if (key === 'ArrowUp') return (at - 1 + items) % items
  if (key === 'Home') return 0
  return key === 'End' ? items - 1 : null
}
