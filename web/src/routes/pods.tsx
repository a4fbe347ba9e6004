import { PodsPage } from '@/features/pods/pods-page'

export default PodsPage
