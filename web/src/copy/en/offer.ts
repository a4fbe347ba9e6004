export const offer = {
  berths: (count: number) => `${count} of 8 GPUs`,
  bars: { vramPerGpu: 'VRAM per GPU', vram: 'VRAM', ram: 'RAM', vcpu: 'vCPU', gpus: 'GPUs' },
} as const
