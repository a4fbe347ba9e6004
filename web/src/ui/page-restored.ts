import { useEffect } from 'react'

/** Acts when the browser brings the page back as it was left, for instance by its Back button. */
export function usePageRestored(act: () => void): void {
  useEffect(() => {
    const onShow = (event: PageTransitionEvent) => {
      if (event.persisted) act()
    }
    addEventListener('pageshow', onShow)
    return () => removeEventListener('pageshow', onShow)
  }, [act])
}
