import { X } from 'lucide-react'
import { useEffect, useState } from 'react'
import { copy } from '@/copy/en'
import { isPro } from '@/features/session/model'
import { useTeam } from '@/features/session/queries'
import { readStored, writeStored } from '@/lib/storage'
import { IconButton } from '@/ui/button'
import { TextLink } from '@/ui/button-link'
import { awayFor } from './upgrade'

const key = 'upgrade-box'

/** Advertises Pro to teams without it; closed it stays away for five hours. */
export function UpgradeBox() {
  const { team } = useTeam()
  const [away, setAway] = useState(() => awayFor(readStored(key), Date.now()))
  useEffect(() => {
    if (away === 0) return
    const timer = setTimeout(() => setAway(awayFor(readStored(key), Date.now())), away)
    return () => clearTimeout(timer)
  }, [away])
  if (!team || isPro(team) || away > 0) return null
  const close = () => {
    const closedAt = Date.now()
    writeStored(key, { closedAt })
    setAway(awayFor({ closedAt }, closedAt))
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
