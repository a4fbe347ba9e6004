import { X } from 'lucide-react'
import { useState } from 'react'
import { copy } from '@/copy/en'
import { useTeam } from '@/features/session/queries'
import { asRecord, readStored, writeStored } from '@/lib/storage'
import { IconButton } from '@/ui/button'
import { TextLink } from '@/ui/button-link'

const key = 'upgrade-box'
const closedFor = 18_000_000

/** Advertises Pro to teams without it; closed it stays away for five hours. */
export function UpgradeBox() {
  const { team } = useTeam()
  const [closed, setClosed] = useState(() => wasClosed(Date.now()))
  if (!team || team.plan === 'pro' || closed) return null
  const close = () => {
    writeStored(key, { closedAt: Date.now() })
    setClosed(true)
  }
  return (
    <section aria-label={copy.shell.upgradeTitle} className="card relative p-3.5">
      <h2 className="font-medium text-control text-hi">{copy.shell.upgradeTitle}</h2>
      <p className="mt-1 text-meta">{copy.shell.upgradeText}</p>
      <p className="mt-2 text-control">
        <TextLink to="/create-team">{copy.shell.upgradeLink}</TextLink>
      </p>
      <IconButton label={copy.shell.upgradeClose} className="absolute top-1 right-1" onClick={close}>
        <X size={14} aria-hidden="true" />
      </IconButton>
    </section>
  )
}

function wasClosed(now: number): boolean {
  const at = asRecord(readStored(key))?.closedAt
  return typeof at === 'number' && now - at < closedFor
}
