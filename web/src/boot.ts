// Runs as a blocking classic script before the first paint, and may import nothing (vite-boot.ts wraps it).
// It takes the one-time token out of the address before any other code can see or log it, and marks the page
// as possibly signed in, which keeps it blank until that is known.
const fragment = new URLSearchParams(location.hash.slice(1))
const tokenHash = fragment.get('type') === 'magiclink' ? fragment.get('token_hash') : null
const problem = fragment.get('error_description')
if (fragment.has('token_hash') || problem) {
  history.replaceState(history.state, '', location.pathname + location.search)
}

let stored = false
try {
  stored = localStorage.getItem('homeport-auth') !== null
} catch {
  // No storage, no session.
}

window.homeportBoot = { tokenHash, problem, stored }
document.documentElement.dataset.auth = tokenHash || stored ? 'maybe' : 'none'
