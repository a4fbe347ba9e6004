/** What src/boot.ts found in the address and the storage before anything else ran. */
interface HomeportBoot {
  /** The one-time token of a mailed link, taken out of the address. */
  readonly tokenHash: string | null
  /** Why the mailed link was refused, in the service's words. */
  readonly problem: string | null
  /** A session lies in the storage; whether it is still good is not known yet. */
  readonly stored: boolean
}

interface Window {
  homeportBoot?: HomeportBoot
}
