import { type ReactNode, useEffect } from 'react'

interface PageProps {
  title: string
  /** Stands beside the title: a legend, a badge. */
  aside?: ReactNode
  subtitle?: string
  actions?: ReactNode
  /** A list is being loaded again in the background. */
  refreshing?: boolean
  children: ReactNode
}

/** A page of the shell: one heading, its actions, and the tide line that shows a background refresh. */
export function Page({ title, aside, subtitle, actions, refreshing = false, children }: PageProps) {
  usePageTitle(title)
  return (
    <div className="grid grid-cols-1 gap-6">
      <header>
        <div className="flex flex-wrap items-center gap-x-5 gap-y-3">
          <div className="min-w-0">
            <h1 tabIndex={-1} className="font-semibold text-title">
              {title}
            </h1>
            {subtitle ? <p className="mt-0.5 text-body text-mid">{subtitle}</p> : null}
          </div>
          {aside}
          {actions ? <div className="flex w-full flex-wrap gap-2 sm:ml-auto sm:w-auto">{actions}</div> : null}
        </div>
        <TideLine moving={refreshing} />
      </header>
      {children}
    </div>
  )
}

/** A hairline that moves while something is refreshed behind the data that stays. */
function TideLine({ moving }: { moving: boolean }) {
  return (
    <div aria-hidden="true" className="relative mt-4 h-px overflow-hidden bg-line-1">
      {moving ? <div className="absolute inset-y-0 w-1/3 animate-tide bg-tide" /> : null}
    </div>
  )
}

/** Names the document after the page. */
export function usePageTitle(title: string): void {
  useEffect(() => {
    document.title = title === 'Homeport' ? title : `${title} · Homeport`
  }, [title])
}
