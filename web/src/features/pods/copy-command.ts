import { copy } from '@/copy/en'
import { alertToast, toast } from '@/ui/toast'

const copiedFor = 2000

/** Puts a command on the clipboard and says so. */
export async function copyCommand(command: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(command)
    toast(copy.pods.copied, copiedFor)
  } catch (error) {
    console.error('pods: clipboard refused', error)
    alertToast(copy.pods.copyFailed)
  }
}
