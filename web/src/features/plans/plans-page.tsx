import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Check } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { copy } from '@/copy/en'
import { useSession } from '@/features/session/queries'
import { Button, buttonStyles } from '@/ui/button'
import { Page } from '@/ui/page'
import { configQuery } from './queries'
import { TeamDetailsDialog } from './team-details-dialog'

/** The plans a team can be created on. */
export function PlansPage() {
  const navigate = useNavigate()
  const signedIn = useSession().status === 'in'
  const [open, setOpen] = useState(false)
  const upgrade = () => {
    if (signedIn) setOpen(true)
    else void navigate({ to: '/auth', search: { redirect: '/create-team' } })
  }
  return (
    <Page title={copy.plans.title} subtitle={copy.plans.note}>
      <div className="grid grid-cols-1 gap-4 lg:grid-cols-[7fr_5fr]">
        <PlanCard name={copy.plans.pro} perks={copy.plans.proPerks} featured>
          <p className="price flex h-12 items-baseline gap-1 text-hi">
            <span className="font-semibold text-display">{copy.plans.proPrice}</span>
            <span className="text-low">{copy.plans.perMonth}</span>
          </p>
          <p className="mt-1 text-control">{copy.plans.proExtra}</p>
          <Button kind="primary" size="large" className="mt-5 w-full sm:w-auto sm:min-w-56" onClick={upgrade}>
            {copy.plans.upgrade}
          </Button>
        </PlanCard>
        <PlanCard name={copy.plans.enterprise} perks={copy.plans.enterprisePerks}>
          <p className="flex h-12 items-center font-semibold text-hi text-title">
            {copy.plans.enterprisePrice}
          </p>
          <p aria-hidden="true" className="mt-1 hidden text-control lg:block">
            &nbsp;
          </p>
          <SalesLink />
        </PlanCard>
      </div>
      <TeamDetailsDialog open={open} onClose={() => setOpen(false)} />
    </Page>
  )
}

interface PlanCardProps {
  name: string
  perks: readonly string[]
  featured?: boolean
  children: ReactNode
}

function PlanCard({ name, perks, featured = false, children }: PlanCardProps) {
  return (
    <section
      aria-label={name}
      className={featured ? 'rounded-card border border-line-2 bg-ink-2 p-6' : 'card p-6'}
    >
      <h2 className="mb-3 font-medium text-card">{name}</h2>
      {children}
      <ul className="mt-6 grid grid-cols-1 gap-2.5 border-line-1 border-t pt-5">
        {perks.map((perk) => (
          <li key={perk} className="flex items-start gap-2.5">
            <Check size={16} aria-hidden="true" className="mt-[2.5px] shrink-0 text-beacon" />
            {perk}
          </li>
        ))}
      </ul>
    </section>
  )
}

function SalesLink() {
  const { data } = useQuery(configQuery)
  return (
    <a
      href={`mailto:${data?.salesEmail ?? ''}`}
      className={`${buttonStyles({ size: 'large' })} mt-5 w-full sm:w-auto sm:min-w-56`}
    >
      {copy.plans.sales}
    </a>
  )
}
