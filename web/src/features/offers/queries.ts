import { queryOptions, useQuery } from '@tanstack/react-query'
import { call } from '@/api/client'
import type { CreatePod, Offer } from '@/api/types'
import { useSession, useTeam } from '@/features/session/queries'

/** What can be rented now: with a team at that team's prices, without one (visitors) at list prices. */
export const resourcesQuery = (teamId: string | null) =>
  queryOptions({
    queryKey: ['resources', teamId],
    queryFn: async () => call('get', '/resources', { query: teamId ? { team_id: teamId } : {} }),
    staleTime: 5 * 60_000,
  })

/** The offers for the reader: nothing is asked before it is known who that is. */
export function useResources() {
  const session = useSession()
  const { team, status } = useTeam()
  return useQuery({
    ...resourcesQuery(team?.id ?? null),
    enabled: session.status === 'none' || (session.status === 'in' && status !== 'loading'),
  })
}

/** The body of POST /pods: it echoes the whole offer, and the server prices it by itself. */
export function orderFor(offer: Offer, teamId: string, volumeId: string, keyId: string): CreatePod {
  return {
    volume_id: volumeId,
    ssh_key_id: keyId,
    team_id: teamId,
    cloud_id: offer.cloudId,
    gpu_type: offer.gpuType,
    socket: offer.socket,
    country: offer.country,
    gpu_count: offer.gpuCount,
    gpu_memory: offer.gpuMemory,
    vcpu: offer.vcpu,
    memory: offer.memory,
    price: offer.price,
    currency: offer.currency,
    default_disk_size: offer.defaultDiskSize,
    disk_price: offer.diskPrice,
    security: offer.security,
    provider: offer.provider,
    is_spot: offer.isSpot,
    data_center_id: offer.dataCenterId,
    image: offer.image,
  }
}
