import {
  Boxes,
  CreditCard,
  Eye,
  HardDrive,
  KeyRound,
  Layers,
  type LucideIcon,
  Plus,
  Server,
  Users,
} from 'lucide-react'
import { copy } from '@/copy/en'

export interface NavigationLink {
  readonly to: string
  readonly label: string
  readonly icon: LucideIcon
  readonly soon?: boolean
  /** Only operators see it. */
  readonly operator?: boolean
}

const { nav } = copy.shell

/** The links of the sidebar, in their two groups. */
export const navigation: readonly { readonly title: string; readonly links: readonly NavigationLink[] }[] = [
  {
    title: copy.shell.products,
    links: [
      { to: '/create', label: nav.create, icon: Plus },
      { to: '/pods', label: nav.pods, icon: Server },
      { to: '/storage', label: nav.storage, icon: HardDrive },
      { to: '/batch-inference', label: nav.batch, icon: Layers, soon: true },
      { to: '/multi-node-clusters', label: nav.clusters, icon: Boxes, soon: true },
    ],
  },
  {
    title: copy.shell.settings,
    links: [
      { to: '/ssh-keys', label: nav.keys, icon: KeyRound },
      { to: '/teams', label: nav.teams, icon: Users },
      { to: '/billing', label: nav.billing, icon: CreditCard },
      { to: '/operator', label: nav.operator, icon: Eye, operator: true },
    ],
  },
]
