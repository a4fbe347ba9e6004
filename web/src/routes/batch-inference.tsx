import { copy } from '@/copy/en'
import { InterestPage } from '@/features/interest/interest-page'

export default function BatchInference() {
  return <InterestPage product="batch-inference" {...copy.interest.batch} />
}
