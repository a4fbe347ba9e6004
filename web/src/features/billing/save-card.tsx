import { useQuery } from '@tanstack/react-query'
import { copy } from '@/copy/en'
import { Switch } from '@/ui/field'
import { autoTopUpQuery } from './auto-queries'

interface SaveCardProps {
  teamId: string
  checked: boolean
  onChange: (checked: boolean) => void
}

/** Offers to save the card of a payment, to a team that has none. */
export default function SaveCard({ teamId, checked, onChange }: SaveCardProps) {
  const { data: topUp } = useQuery(autoTopUpQuery(teamId))
  if (!topUp || topUp.card) return null
  return (
    <div className="mt-4">
      <Switch label={copy.topUp.keep} checked={checked} onChange={onChange} />
      <p className="mt-1 text-low text-meta">{copy.topUp.keepText}</p>
    </div>
  )
}
