import { copy } from '@/copy/en'
import { InterestPage } from '@/features/interest/interest-page'

export default function MultiNodeClusters() {
  return <InterestPage product="multi-node-clusters" {...copy.interest.clusters} />
}
