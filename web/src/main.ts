import { prepare, show } from '@/app/start'
import './styles/landing.css'

// Run in one piece, the scripts hold a slow phone's page for a third of a second. In parts, whatever the reader
// does in between has its turn.
await turn()
const router = prepare()
await turn()
await show(router)

/** Lets everything else that waits go first. */
function turn(): Promise<void> {
  return 'scheduler' in window && 'yield' in window.scheduler
    ? window.scheduler.yield()
    : new Promise((resolve) => setTimeout(resolve))
}
