import type { ReactNode } from 'react'

// The landing page draws its few icons itself: the icon library's frame alone weighs more than all of them.

function Icon({ size, children }: { size: number; children: ReactNode }) {
  return (
    <svg
      viewBox="0 0 24 24"
      width={size}
      height={size}
      fill="none"
      stroke="currentColor"
      strokeWidth="1.75"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      {children}
    </svg>
  )
}

export function BackIcon() {
  return (
    <Icon size={18}>
      <path d="m15 6-6 6 6 6" />
    </Icon>
  )
}

export function OnIcon() {
  return (
    <Icon size={18}>
      <path d="m9 6 6 6-6 6" />
    </Icon>
  )
}

export function PauseIcon() {
  return (
    <Icon size={18}>
      <path d="M9 6v12M15 6v12" />
    </Icon>
  )
}

export function PlayIcon() {
  return (
    <Icon size={18}>
      <path d="m8 5.5 10 6.5-10 6.5z" />
    </Icon>
  )
}

export function PodIcon() {
  return (
    <Icon size={18}>
      <rect x="3" y="4" width="18" height="7" rx="1.5" />
      <rect x="3" y="13" width="18" height="7" rx="1.5" />
      <path d="M7 7.5h.01M7 16.5h.01" />
    </Icon>
  )
}

export function VolumeIcon() {
  return (
    <Icon size={18}>
      <path d="M3 13h18v5a1.5 1.5 0 0 1-1.5 1.5h-15A1.5 1.5 0 0 1 3 18zl3-8h12l3 8M7 16.3h.01" />
    </Icon>
  )
}
