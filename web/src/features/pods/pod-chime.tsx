import { useEffect, useRef } from 'react'
import type { Pod } from '@/api/types'
import chimeUrl from '@/assets/pod-ready.wav'
import { playChime } from '@/lib/chime'
import { mutedPods } from './chime-options'
import { becameReady } from './model'
import { usePods } from './queries'

/** Sounds when a pod becomes ready, on whichever page the reader is. Keeps the list of pods fresh for that. */
export function PodChime({ enabled }: { enabled: boolean }) {
  const { data } = usePods(enabled)
  const before = useRef<Pod[]>([])
  useEffect(() => {
    if (!data) return
    const ready = becameReady(before.current, data)
    before.current = data
    if (ready.some((pod) => !mutedPods.get().includes(pod.id))) playChime(chimeUrl)
  }, [data])
  return null
}
