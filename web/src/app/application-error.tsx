import { Component, type ReactNode } from 'react'
import { copy } from '@/copy/en'
import { Button } from '@/ui/button'
import { usePageTitle } from '@/ui/page'

/** What stands in the place of a page that could not be drawn, inside the frame that could. */
export function PageError({ error }: { error: unknown }) {
  usePageTitle(copy.app.applicationError)
  const message = error instanceof Error ? error.message : String(error)
  return (
    <div role="alert" className="card mx-auto max-w-[480px] p-6">
      <h1 tabIndex={-1} className="font-semibold text-title">
        {copy.app.applicationError}
      </h1>
      <p className="wrap-anywhere mt-2 text-body">{copy.app.somethingWrong(message)}</p>
      <Button kind="primary" className="mt-5" onClick={() => location.reload()}>
        {copy.app.reload}
      </Button>
    </div>
  )
}

/** The same where nothing of the frame is left either. */
export function ApplicationError({ error }: { error: unknown }) {
  return (
    <main className="grid min-h-dvh place-items-center p-5">
      <PageError error={error} />
    </main>
  )
}

/** Catches what the router's own boundaries do not. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { error: unknown }> {
  override state: { error: unknown } = { error: null }

  static getDerivedStateFromError(error: unknown) {
    return { error: error ?? new Error('unknown') }
  }

  override render() {
    return this.state.error ? <ApplicationError error={this.state.error} /> : this.props.children
  }
}
