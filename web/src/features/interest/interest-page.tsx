import { useQuery } from '@tanstack/react-query'
import { BellRing } from 'lucide-react'
import type { Product } from '@/api/types'
import { copy } from '@/copy/en'
import { userInfoQuery, useSession, useTeam } from '@/features/session/queries'
import { Badge } from '@/ui/badge'
import { Button } from '@/ui/button'
import { DepthLines } from '@/ui/depth-lines'
import { Page } from '@/ui/page'
import { Spinner } from '@/ui/spinner'
import { useExpressInterest, useInterest } from './queries'

/** A product that is not there yet, and the way to say that one waits for it. */
export function InterestPage({ product, title, text }: { product: Product; title: string; text: string }) {
  return (
    <Page title={title} aside={<Badge tone="beacon">{copy.interest.badge}</Badge>}>
      <section className="card relative grid min-h-[360px] place-items-center overflow-hidden px-6 py-16 text-center">
        <DepthLines className="absolute inset-0 size-full" />
        <div className="relative grid max-w-[46ch] grid-cols-1 justify-items-center gap-6">
          <p className="text-balance font-medium text-card text-hi">{text}</p>
          <div className="grid min-h-11 place-items-center">
            <Interest product={product} />
          </div>
        </div>
      </section>
    </Page>
  )
}

function Interest({ product }: { product: Product }) {
  const session = useSession()
  const signedIn = session.status === 'in'
  const { team, status } = useTeam()
  // While it is not known who the reader is, there is nothing to check; that has its own way to try again.
  const { isError: unknown } = useQuery({
    ...userInfoQuery(signedIn ? session.userId : ''),
    enabled: signedIn,
  })
  const { data, isFetching } = useInterest(product)
  const { mutate, isPending } = useExpressInterest(team?.id ?? '', product)
  if ((status === 'loading' && !unknown) || isFetching) {
    return (
      <span role="status" aria-label={copy.interest.checking}>
        <Spinner className="size-5 text-beacon" />
      </span>
    )
  }
  if (data?.interested) {
    return (
      <p role="status" className="flex items-center gap-2.5 text-ready">
        <BellRing size={18} aria-hidden="true" />
        {copy.interest.recorded}
      </p>
    )
  }
  return (
    <Button
      kind="primary"
      size="large"
      busy={isPending}
      disabled={!signedIn}
      title={signedIn ? undefined : copy.interest.signIn}
      onClick={() => (team ? mutate() : undefined)}
    >
      {isPending ? copy.interest.submitting : copy.interest.button}
    </Button>
  )
}
