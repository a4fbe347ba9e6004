import type { CreatePod, Offer } from '@/api/types'

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
