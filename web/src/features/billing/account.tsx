import type { Team } from '@/api/types'
import { PlanSection } from './plan-section'
import { Statements } from './statements'

/** The end of the page: what the team pays and may spend, and its statements. */
export default function Account({ team }: { team: Team }) {
  return (
    <>
      <PlanSection team={team} />
      <Statements teamId={team.id} />
    </>
  )
}
