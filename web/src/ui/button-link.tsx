import { Link, type LinkProps } from '@tanstack/react-router'
import { clsx } from 'clsx'
import type { KeyboardEvent, ReactNode } from 'react'
import { type ButtonStyles, buttonStyles } from './button'

interface ButtonLinkProps extends Pick<LinkProps, 'to' | 'search' | 'hash'>, ButtonStyles {
  className?: string
  icon?: ReactNode
  children: ReactNode
  onClick?: () => void
  /** Announced as a button too, where the page speaks of one. It still is a link to open elsewhere. */
  button?: boolean
}

/** A link that looks like a button. */
export function ButtonLink({
  kind,
  size,
  wide,
  className,
  icon,
  children,
  button,
  ...rest
}: ButtonLinkProps) {
  return (
    <Link
      className={clsx(buttonStyles({ kind, size, wide }), className)}
      {...(button ? { role: 'button', onKeyDown: pressOnSpace } : {})}
      {...rest}
    >
      {icon}
      {children}
    </Link>
  )
}

/** What announces itself as a button answers to the space bar as well. */
function pressOnSpace(event: KeyboardEvent<HTMLElement>): void {
  if (event.key !== ' ') return
  event.preventDefault()
  event.currentTarget.click()
}

/** A link inside a sentence. */
export function TextLink({
  className,
  ...rest
}: Pick<LinkProps, 'to' | 'search' | 'hash'> & { className?: string; children: ReactNode }) {
  return (
    <Link
      className={clsx(
        'rounded-badge text-hi underline decoration-line-3 underline-offset-3 hover:decoration-beacon',
        className,
      )}
      {...rest}
    />
  )
}
