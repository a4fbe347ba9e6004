import { Tabs as Radix } from 'radix-ui'
import type { ReactNode } from 'react'

interface TabsProps<Value extends string> {
  label: string
  value: Value
  tabs: readonly { value: Value; label: string }[]
  onChange: (value: Value) => void
  children: ReactNode
}

/** Tabs with arrow keys; the panel of the chosen one is the child. */
export function Tabs<Value extends string>({ label, value, tabs, onChange, children }: TabsProps<Value>) {
  return (
    <Radix.Root
      value={value}
      onValueChange={(next) => {
        const chosen = tabs.find((tab) => tab.value === next)
        if (chosen) onChange(chosen.value)
      }}
    >
      <Radix.List aria-label={label} className="grid grid-cols-3 border-line-1 border-b sm:flex sm:gap-6">
        {tabs.map((tab) => (
          <Radix.Trigger
            key={tab.value}
            value={tab.value}
            className="-mb-px min-h-11 border-transparent border-b-2 font-medium text-control text-low transition-colors hover:text-hi data-[state=active]:border-beacon data-[state=active]:text-hi"
          >
            {tab.label}
          </Radix.Trigger>
        ))}
      </Radix.List>
      <Radix.Content value={value} className="pt-5">
        {children}
      </Radix.Content>
    </Radix.Root>
  )
}
