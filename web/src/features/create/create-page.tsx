import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { reasonOf } from '@/api/error'
import { copy } from '@/copy/en'
import { useKeys } from '@/features/keys/queries'
import { orderFor } from '@/features/offers/queries'
import { useCreatePod } from '@/features/pods/queries'
import { useCreateAccess, useTeam } from '@/features/session/queries'
import { useVolumes, withKey } from '@/features/volumes/queries'
import { useBalance } from '@/features/wallet/queries'
import { formatTimeLeft } from '@/lib/time'
import { Button } from '@/ui/button'
import { Switch } from '@/ui/field'
import { ListError } from '@/ui/list-error'
import { useMedia } from '@/ui/media'
import { Notice } from '@/ui/notice'
import { Page } from '@/ui/page'
import { Skeleton } from '@/ui/spinner'
import { Attachments } from './attachments'
import { GpuCounts, GpuTypes } from './gpu-choice'
import { FirstMissing } from './missing-list'
import { OfferFilterPanel } from './offer-filters'
import { minimumBalance, missingFor } from './prerequisites'
import { Specification } from './specification'
import { Price, Summary } from './summary'
import { useConfiguration } from './use-configuration'

/** The configurator of a new pod. Visitors may look and choose, not create. */
export function CreatePage() {
  const configuration = useConfiguration()
  const { resources, type, offer } = configuration
  const attached = useAttachments()
  const { data: wallet } = useBalance()
  const wide = useMedia('(min-width: 768px)')
  const [again, setAgain] = useState(false)
  const create = useCreate(configuration, attached, wallet?.balance ?? null, again)
  const funded = wallet && wallet.balance >= minimumBalance ? wallet : null
  const rate = (wallet?.spending_per_hour ?? 0) + (offer?.price ?? 0)
  return (
    <Page title={copy.create.title} refreshing={resources.isFetching && !resources.isPending}>
      {resources.isError ? (
        <ListError
          text={copy.create.failed}
          detail={reasonOf(resources.error)}
          busy={resources.isFetching}
          onRetry={() => void resources.refetch()}
        />
      ) : null}
      {resources.data === undefined ? (
        <Waiting failed={resources.isError} />
      ) : (
        <div className="grid grid-cols-1 gap-8 xl:grid-cols-[minmax(0,1fr)_340px]">
          <div className="grid grid-cols-1 content-start gap-8">
            <GpuTypes {...configuration} />
            <GpuCounts {...configuration} />
            <OfferFilterPanel {...configuration} />
            <Specification offer={offer} />
            <Attachments {...attached} />
            <div>
              <Switch label={copy.create.autoRelaunch} checked={again} onChange={setAgain} />
              <p className="text-control text-low">{copy.create.autoRelaunchHint}</p>
            </div>
          </div>
          <div className="pb-30 md:pb-0">
            <Summary
              type={type}
              offer={offer}
              volumeName={attached.volume?.name ?? null}
              keyName={attached.keys.find(({ id }) => id === attached.keyId)?.name ?? null}
              missing={create.missing}
              timeLeft={funded && offer ? formatTimeLeft(funded.balance, rate) : null}
              action={
                <>
                  {create.invalid ? (
                    <Notice tone="danger" className="mt-4">
                      {copy.create.invalid}
                    </Notice>
                  ) : null}
                  {wide ? <CreateButton {...create} className="mt-4" /> : null}
                </>
              }
            />
          </div>
        </div>
      )}
      {wide || !resources.data ? null : (
        <div className="fixed inset-x-0 bottom-0 z-20 border-line-2 border-t bg-ink-1 px-5 py-3">
          {create.missing[0] ? <FirstMissing missing={create.missing[0]} /> : null}
          <div className="flex items-center gap-4">
            <Price offer={offer} />
            <CreateButton {...create} />
          </div>
        </div>
      )}
    </Page>
  )
}

/** The volumes and keys to choose from; the newest of each is chosen until the reader chooses. */
function useAttachments() {
  const { data: allVolumes } = useVolumes()
  const { data: keys } = useKeys()
  const { can } = useCreateAccess(copy.create.signIn)
  const [volumeWish, setVolumeWish] = useState<string | null>(null)
  const [keyWish, onKey] = useState<string | null>(null)
  const volumes = (allVolumes ?? []).filter((volume) => !volume.currently_used)
  const pick = (wish: string | null, rows: readonly { id: string }[]) =>
    wish === '' || rows.some((row) => row.id === wish) ? (wish ?? '') : (rows[0]?.id ?? '')
  const volumeId = pick(volumeWish, volumes)
  return {
    volumes,
    volume: volumes.find(({ id }) => id === volumeId),
    volumeId,
    volumesKnown: allVolumes !== undefined,
    volumesTaken: (allVolumes ?? []).length > 0 && volumes.length === 0,
    onVolume: (id: string) => {
      setVolumeWish(id)
      const volume = volumes.find((each) => each.id === id)
      // Who turns the question down keeps the choice: it is asked again before the pod is created.
      if (can) withKey(volume, () => undefined)
    },
    keys: keys ?? [],
    keyId: pick(keyWish, keys ?? []),
    keysKnown: keys !== undefined,
    onKey,
  }
}

function useCreate(
  { offer }: ReturnType<typeof useConfiguration>,
  attached: ReturnType<typeof useAttachments>,
  balance: number | null,
  again: boolean,
) {
  const navigate = useNavigate()
  const { team } = useTeam()
  const access = useCreateAccess(copy.create.signIn)
  const { mutate } = useCreatePod(team?.id ?? '')
  const [refused, setRefused] = useState(false)
  const missing = missingFor({
    freeVolumes: attached.volumesKnown ? attached.volumes.length : null,
    volumeChosen: attached.volumeId !== '',
    keys: attached.keysKnown ? attached.keys.length : null,
    keyChosen: attached.keyId !== '',
    balance,
  })
  const known = team !== null && attached.volumesKnown && attached.keysKnown && balance !== null
  const submit = () => {
    if (!team) return
    if (!offer) {
      setRefused(true)
      return
    }
    const order = orderFor(offer, team.id, attached.volumeId, attached.keyId)
    withKey(attached.volume, () => {
      mutate(again ? { ...order, auto_relaunch: true } : order)
      void navigate({ to: '/pods' })
    })
  }
  return {
    missing,
    invalid: refused && !offer,
    disabled: !access.can || !known || missing.length > 0,
    reason: access.can ? undefined : access.reason,
    submit,
  }
}

interface CreateButtonProps {
  disabled: boolean
  reason: string | undefined
  submit: () => void
  className?: string
}

function CreateButton({ disabled, reason, submit, className }: CreateButtonProps) {
  return (
    <Button
      kind="primary"
      size="large"
      wide
      disabled={disabled}
      title={reason}
      onClick={submit}
      className={className}
    >
      {copy.create.submit}
    </Button>
  )
}

function Waiting({ failed }: { failed: boolean }) {
  if (failed) return null
  return (
    <div aria-busy="true" className="grid grid-cols-1 gap-8 xl:grid-cols-[minmax(0,1fr)_340px]">
      <div className="grid grid-cols-1 gap-3 sm:grid-cols-2 lg:grid-cols-3">
        {['a', 'b', 'c', 'd', 'e', 'f'].map((key) => (
          <Skeleton key={key} className="h-[78px] rounded-card" />
        ))}
      </div>
      <Skeleton className="h-48 rounded-card" />
    </div>
  )
}
