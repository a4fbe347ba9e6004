import { useEffect, useState } from 'react'

/** Whether the command palette is open, and whether it ever was. Ctrl+K or ⌘K opens and closes it. */
export function usePalette(): { open: boolean; wanted: boolean; close: () => void } {
  const [open, setOpen] = useState(false)
  const [wanted, setWanted] = useState(false)
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return
      event.preventDefault()
      setWanted(true)
      setOpen((now) => !now)
    }
    window.addEventListener('keydown', press)
    return () => window.removeEventListener('keydown', press)
  }, [])
  return { open, wanted, close: () => setOpen(false) }
}
