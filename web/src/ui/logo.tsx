/** The mark: a harbour wall open to the upper right, a GPU die moored inside. */
export function Logo({ className = 'size-[22px]' }: { className?: string }) {
  return (
    <svg viewBox="0 0 32 32" fill="none" aria-hidden="true" className={className}>
      <path
        d="M21.6 5.1A12.2 12.2 0 1 0 26.9 10.4"
        stroke="currentColor"
        strokeWidth="3.2"
        strokeLinecap="round"
      />
      <rect x="10.75" y="10.75" width="10.5" height="10.5" rx="2.2" className="fill-beacon" />
    </svg>
  )
}
