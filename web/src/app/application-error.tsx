import { Component, type ReactNode } from 'react'
import { copy } from '@/copy/en'
import { Button } from '@/ui/button'

/** What is left of a page that could not be drawn. */
export function ApplicationError({ error }: { error: unknown }) {
  const message = error instanceof Error ? error.message : String(error)
  return (
    <main className="grid min-h-dvh place-items-center p-5">
      <div className="card max-w-[480px] p-6">
        <h1 className="font-semibold text-title">{copy.app.applicationError}</h1>
        <p className="wrap-anywhere mt-2 text-body">{copy.app.somethingWrong(message)}</p>
        <Button kind="primary" className="mt-5" onClick={() => location.reload()}>
          {copy.app.reload}
        </Button>
      </div>
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
