import { Link, type LinkProps } from '@tanstack/react-router'
import { clsx } from 'clsx'
import type { ReactNode } from 'react'
import { type ButtonStyles, buttonStyles } from './button'

type ButtonLinkProps = Pick<LinkProps, 'to' | 'search'> &
  ButtonStyles & { className?: string; icon?: ReactNode; children: ReactNode; onClick?: () => void }

/** A link that looks like a button. */
export function ButtonLink({ kind, size, wide, className, icon, children, ...rest }: ButtonLinkProps) {
  return (
    <Link className={clsx(buttonStyles({ kind, size, wide }), className)} {...rest}>
      {icon}
      {children}
    </Link>
  )
}

/** A link inside a sentence. */
export function TextLink({
  className,
  ...rest
}: Pick<LinkProps, 'to' | 'search'> & { className?: string; children: ReactNode }) {
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
