import { saveTeamChoice } from '@/features/session/queries'

const reloadDelay = 100

/** Acts for another team: the choice is saved and the page loads anew, which drops everything of the old one. */
export function switchTeam(id: string): void {
  saveTeamChoice(id)
  setTimeout(() => location.reload(), reloadDelay)
}
