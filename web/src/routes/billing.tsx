import { BillingPage } from '@/features/billing/billing-page'

export default BillingPage
