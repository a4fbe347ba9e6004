import { type KeyboardEvent, type ReactNode, useId, useRef } from 'react'

interface TabsProps<Value extends string> {
  label: string
  value: Value
  tabs: readonly { value: Value; label: string }[]
  onChange: (value: Value) => void
  children: ReactNode
}

/** Tabs: the arrow keys choose, round and round; the panel of the chosen one is the child. */
export function Tabs<Value extends string>({ label, value, tabs, onChange, children }: TabsProps<Value>) {
  const id = useId()
  const list = useRef<HTMLDivElement>(null)
  const chosen = tabs.findIndex((tab) => tab.value === value)
  const step = (event: KeyboardEvent) => {
    const last = tabs.length - 1
    const to = { ArrowLeft: chosen - 1, ArrowRight: chosen + 1, Home: 0, End: last }[event.key]
    const next = to === undefined ? undefined : tabs.at(to > last ? 0 : to)
    if (!next) return
    event.preventDefault()
    onChange(next.value)
    list.current?.querySelectorAll<HTMLElement>('[role="tab"]')[tabs.indexOf(next)]?.focus()
  }
  return (
    <>
      <div
        ref={list}
        role="tablist"
        aria-label={label}
        className="grid auto-cols-fr grid-flow-col border-line-1 border-b sm:flex sm:gap-6"
      >
        {tabs.map((tab) => (
          <button
            key={tab.value}
            id={`${id}-${tab.value}`}
            type="button"
            role="tab"
            aria-selected={tab.value === value}
            aria-controls={`${id}-panel`}
            tabIndex={tab.value === value ? 0 : -1}
            onClick={() => onChange(tab.value)}
            onKeyDown={step}
            className="-mb-px min-h-11 border-transparent border-b-2 px-2 font-medium text-control text-low transition-colors hover:text-hi aria-selected:border-beacon aria-selected:text-hi sm:px-0"
          >
            {tab.label}
          </button>
        ))}
      </div>
      <div
        id={`${id}-panel`}
        role="tabpanel"
        aria-labelledby={`${id}-${value}`}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a panel may hold nothing else to focus.
        tabIndex={0}
        className="pt-5"
      >
        {children}
      </div>
    </>
  )
}
