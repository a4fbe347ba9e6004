import { useEffect, useState } from 'react'

interface PaletteState {
  readonly open: boolean
  /** Whether it ever was open: its code is loaded then, not before. */
  readonly wanted: boolean
  readonly show: () => void
  readonly close: () => void
}

/** The state of the command palette. Ctrl+K or ⌘K opens and closes it. */
export function usePalette(): PaletteState {
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
  const show = () => {
    setWanted(true)
    setOpen(true)
  }
  return { open, wanted, show, close: () => setOpen(false) }
}
