import { useLocation } from '@tanstack/react-router'

/** The search parameters that bring a reader back here after signing in. */
export function useReturnPath(): { redirect?: string } {
  const { pathname, searchStr } = useLocation()
  return pathname === '/auth' ? {} : { redirect: pathname + searchStr }
}
