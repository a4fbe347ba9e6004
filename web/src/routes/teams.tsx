import { TeamPage } from '@/features/team/team-page'

export default TeamPage
