import { PlansPage } from '@/features/plans/plans-page'

export default PlansPage
