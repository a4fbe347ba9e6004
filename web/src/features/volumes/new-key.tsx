import { Copy, Download } from 'lucide-react'
import { copy } from '@/copy/en'
import { downloadText } from '@/lib/download'
import { Button } from '@/ui/button'
import { Checkbox } from '@/ui/checkbox'
import { Field, TextArea } from '@/ui/field'
import { alertToast, toast } from '@/ui/toast'
import { keyFileName } from './key-model'

const texts = copy.volumeKey
const copiedFor = 2000

interface NewKeyProps {
  /** The volume that it is for. */
  name: string
  volumeKey: string
  stored: boolean
  onStored: (stored: boolean) => void
}

/** The key of a volume that is yet to be made, for its team to store. */
export function NewKey({ name, volumeKey, stored, onStored }: NewKeyProps) {
  return (
    <div className="grid grid-cols-1 gap-3 rounded-control border border-line-2 bg-ink-1 p-4">
      <Field label={texts.key} hint={texts.keyHint}>
        {(ids) => (
          <TextArea
            {...ids}
            readOnly
            rows={2}
            spellCheck={false}
            value={volumeKey}
            onFocus={(event) => event.target.select()}
            className="num resize-none break-all"
          />
        )}
      </Field>
      <div className="flex flex-wrap gap-2">
        <Button
          size="small"
          icon={<Copy size={14} aria-hidden="true" />}
          aria-label={texts.copyLabel}
          onClick={() => void copyKey(volumeKey)}
        >
          {texts.copy}
        </Button>
        <Button
          size="small"
          icon={<Download size={14} aria-hidden="true" />}
          aria-label={texts.downloadLabel}
          // The file is what restic takes as --password-file.
          onClick={() => downloadText(keyFileName(name), 'text/plain;charset=utf-8', `${volumeKey}\n`)}
        >
          {texts.download}
        </Button>
      </div>
      <Checkbox label={texts.stored} checked={stored} onChange={onStored} />
    </div>
  )
}

async function copyKey(key: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(key)
    toast(texts.copied, copiedFor)
  } catch (error) {
    console.error('volumes: clipboard refused', error)
    alertToast(texts.copyFailed)
  }
}
