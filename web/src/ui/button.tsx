import { cva, type VariantProps } from 'class-variance-authority'
import { clsx } from 'clsx'
import type { ComponentProps, ReactNode } from 'react'
import { Spinner } from './spinner'

/** The look of everything that acts like a button; links use it through ButtonLink. */
export const buttonStyles = cva(
  'inline-flex select-none items-center justify-center gap-2 whitespace-nowrap rounded-control font-medium transition-colors disabled:opacity-55',
  {
    variants: {
      kind: {
        primary:
          'bg-beacon text-on-beacon enabled:hover:bg-beacon-hi enabled:active:bg-beacon-lo [a&]:hover:bg-beacon-hi',
        plain: 'border border-line-2 bg-ink-2 text-hi enabled:hover:bg-ink-3 [a&]:hover:bg-ink-3',
        ghost: 'text-mid enabled:hover:bg-ink-3 enabled:hover:text-hi [a&]:hover:bg-ink-3 [a&]:hover:text-hi',
        danger:
          'border border-line-2 text-danger enabled:hover:border-danger-solid enabled:hover:bg-danger-wash',
        alarm: 'bg-danger-solid text-on-danger enabled:hover:opacity-90',
      },
      size: {
        small: 'h-8 px-3 text-control pointer-coarse:h-11',
        medium: 'h-9 px-3.5 text-control pointer-coarse:h-11',
        large: 'h-11 px-5 text-body',
      },
      wide: { true: 'w-full', false: '' },
    },
    defaultVariants: { kind: 'plain', size: 'medium', wide: false },
  },
)

export type ButtonStyles = VariantProps<typeof buttonStyles>

type ButtonProps = ComponentProps<'button'> &
  ButtonStyles & {
    /** Work is under way: disabled, with a spinner before the text. */
    busy?: boolean
    icon?: ReactNode
  }

/** A button; `title` says why it is disabled. */
export function Button({
  kind,
  size,
  wide,
  busy = false,
  icon,
  disabled,
  className,
  children,
  ...rest
}: ButtonProps) {
  return (
    <button
      type="button"
      disabled={disabled || busy}
      className={clsx(buttonStyles({ kind, size, wide }), className)}
      {...rest}
    >
      {busy ? <Spinner /> : icon}
      {children}
    </button>
  )
}

type IconButtonProps = Omit<ComponentProps<'button'>, 'aria-label'> & { label: string }

/** A button that shows an icon only; the label is its accessible name. */
export function IconButton({ label, className, ...rest }: IconButtonProps) {
  return (
    <button
      type="button"
      aria-label={label}
      className={clsx(
        'inline-grid size-8 shrink-0 place-items-center rounded-control text-low transition-colors enabled:hover:bg-ink-3 enabled:hover:text-hi disabled:opacity-55 pointer-coarse:size-11',
        className,
      )}
      {...rest}
    />
  )
}
