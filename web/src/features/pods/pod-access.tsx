import { Copy } from 'lucide-react'
import { useEffect, useState, useSyncExternalStore } from 'react'
import { loadConfig } from '@/api/config'
import type { Pod } from '@/api/types'
import chimeUrl from '@/assets/pod-ready.wav'
import { copy } from '@/copy/en'
import { primeChime } from '@/lib/chime'
import { Switch } from '@/ui/field'
import { mutedPods, setChime } from './chime-options'
import { copyCommand } from './copy-command'
import { isComing, sshCommand } from './model'

/** The way into a ready pod, or when it will be there. */
export function PodAccess({ pod }: { pod: Pod }) {
  if (isComing(pod)) return <Coming pod={pod} />
  return pod.status === 'ready' ? <Ready pod={pod} /> : null
}

function Ready({ pod }: { pod: Pod }) {
  const host = usePodHost()
  const command = sshCommand(pod, host)
  if (command === null) return <p className="text-control">{copy.pods.noAddress}</p>
  const [before, after] = command.split('@')
  return (
    <div className="flex items-stretch rounded-control border border-line-1 bg-ink-0">
      <code className="num min-w-0 flex-1 px-3 py-2 text-control text-hi">
        <span aria-hidden="true" className="select-none text-low">
          ${' '}
        </span>
        {before}
        <wbr />@{after}
      </code>
      <button
        type="button"
        aria-label={copy.pods.copyLabel}
        title={copy.pods.copyLabel}
        onClick={() => void copyCommand(command)}
        className="grid w-11 shrink-0 place-items-center rounded-r-control border-line-1 border-l text-mid transition-colors hover:bg-ink-3 hover:text-hi"
      >
        <Copy size={15} aria-hidden="true" />
      </button>
    </div>
  )
}

function Coming({ pod }: { pod: Pod }) {
  const muted = useSyncExternalStore(mutedPods.watch, mutedPods.get)
  return (
    <div className="flex flex-wrap items-center justify-between gap-x-4 gap-y-1">
      <p className="text-control text-hi">{copy.pods.available}</p>
      <Switch
        label={copy.pods.chime}
        checked={!muted.includes(pod.id)}
        onChange={(on) => {
          if (on) primeChime(chimeUrl)
          setChime(pod.id, on)
        }}
      />
    </div>
  )
}

function usePodHost(): string {
  const [host, setHost] = useState(location.hostname)
  useEffect(() => {
    loadConfig().then(
      (config) => setHost(config.podHost),
      (error: unknown) => console.error('pods: no configuration', error),
    )
  }, [])
  return host
}
