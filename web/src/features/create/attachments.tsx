import type { SSHKey, Volume } from '@/api/types'
import { copy } from '@/copy/en'
import { TextLink } from '@/ui/button-link'
import { Field, Select } from '@/ui/field'
import { restoreMinutes } from './restore'

interface AttachmentsProps {
  volumes: readonly Volume[]
  /** There are volumes, and pods hold all of them. */
  volumesTaken: boolean
  volumeId: string
  onVolume: (id: string) => void
  keys: readonly SSHKey[]
  keyId: string
  onKey: (id: string) => void
}

/** The volume and the key of the new pod. Only free volumes are offered. */
export function Attachments({
  volumes,
  volumesTaken,
  volumeId,
  onVolume,
  keys,
  keyId,
  onKey,
}: AttachmentsProps) {
  const chosen = volumes.find(({ id }) => id === volumeId)
  return (
    <div className="grid grid-cols-1 gap-5 sm:grid-cols-2">
      <div>
        <Field label={copy.create.volume} hint={volumesTaken ? copy.create.volumesTaken : volumeHint(chosen)}>
          {(ids) => (
            <Select
              {...ids}
              value={volumeId}
              disabled={volumes.length === 0}
              onChange={(event) => onVolume(event.target.value)}
            >
              <option value="">{copy.create.chooseVolume}</option>
              {volumes.map((volume) => (
                <option key={volume.id} value={volume.id}>
                  {optionText(volume)}
                </option>
              ))}
            </Select>
          )}
        </Field>
        <p className="mt-2 text-control">
          <TextLink to="/storage">{copy.create.newVolume}</TextLink>
        </p>
      </div>
      <div>
        <Field label={copy.create.key} hint={copy.create.keyHint}>
          {(ids) => (
            <Select
              {...ids}
              value={keyId}
              disabled={keys.length === 0}
              onChange={(event) => onKey(event.target.value)}
            >
              <option value="">{copy.create.chooseKey}</option>
              {keys.map(({ id, name }) => (
                <option key={id} value={id}>
                  {name}
                </option>
              ))}
            </Select>
          )}
        </Field>
        <p className="mt-2 text-control">
          <TextLink to="/ssh-keys">{copy.create.newKey}</TextLink>
        </p>
      </div>
    </div>
  )
}

function optionText({ name, size_gb, locked }: Volume): string {
  const text = copy.create.volumeOption(name, size_gb)
  return locked ? copy.volumeKey.lockedOption(text) : text
}

function volumeHint(volume: Volume | undefined): string {
  if (!volume) return copy.create.volumeHint
  const { size_gb, locked } = volume
  if (locked) return copy.volumeKey.lockedHint
  const minutes = restoreMinutes(size_gb)
  return minutes === 0 ? copy.create.nothingToRestore : copy.create.restoreTime(minutes)
}
