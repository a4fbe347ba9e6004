import { DropdownMenu as Radix } from 'radix-ui'
import type { ReactNode } from 'react'

/** A menu below or above its button. Not modal: the modal kind would inject a <style> element. */
export function Menu({
  trigger,
  children,
  label,
}: {
  trigger: ReactNode
  children: ReactNode
  label: string
}) {
  return (
    <Radix.Root modal={false}>
      <Radix.Trigger asChild>{trigger}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content
          aria-label={label}
          align="start"
          sideOffset={6}
          collisionPadding={8}
          className="z-50 min-w-(--radix-dropdown-menu-trigger-width) max-w-80 animate-fade rounded-card border border-line-2 bg-ink-3 p-1.5 shadow-overlay"
        >
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  )
}

export function MenuItem({ onSelect, children }: { onSelect: () => void; children: ReactNode }) {
  return (
    <Radix.Item
      onSelect={onSelect}
      className="flex min-h-9 cursor-pointer items-center gap-2.5 rounded-control px-2.5 text-control text-hi outline-none data-highlighted:bg-ink-1 pointer-coarse:min-h-11"
    >
      {children}
    </Radix.Item>
  )
}

export function MenuLine() {
  return <Radix.Separator className="mx-1 my-1.5 h-px bg-line-2" />
}

export function MenuNote({ children }: { children: ReactNode }) {
  return <Radix.Label className="truncate px-2.5 py-1.5 text-low text-meta">{children}</Radix.Label>
}
