import { OperatorPage } from '@/features/operator/operator-page'

export default OperatorPage
