// @vitest-environment jsdom
import { act, cleanup, fireEvent, render, screen } from '@testing-library/react'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { ModalHost } from './modal'
import { closeModal, openModal } from './modal-store'

beforeEach(() => {
  vi.useFakeTimers()
  render(<ModalHost closeLabel="Close" />)
})
afterEach(() => {
  act(closeModal)
  cleanup()
  vi.useRealTimers()
})

const pass = (milliseconds: number) => act(() => vi.advanceTimersByTime(milliseconds))

test.each(['success', 'error'] as const)('a %s closes itself after 5 s', (type) => {
  act(() => openModal({ type, title: 'Done', message: 'It is.' }))
  pass(4900)
  expect(screen.getByRole('dialog', { name: 'Done' })).toBeTruthy()
  pass(200)
  expect(screen.queryByRole('dialog')).toBeNull()
})

test('a pointer on it holds it open', () => {
  act(() => openModal({ type: 'success', title: 'Done', message: 'It is.' }))
  fireEvent.pointerEnter(screen.getByRole('dialog'))
  pass(20_000)
  expect(screen.getByRole('dialog')).toBeTruthy()
  fireEvent.pointerLeave(screen.getByRole('dialog'))
  pass(5100)
  expect(screen.queryByRole('dialog')).toBeNull()
})

test('a loading modal comes to 95 % in 2 s and stays there', () => {
  act(() => openModal({ type: 'loading', title: 'Creating', message: 'Wait.' }))
  const percent = () => Number(screen.getByRole('progressbar').getAttribute('aria-valuenow'))
  pass(1000)
  expect(percent()).toBe(48)
  pass(1000)
  expect(percent()).toBe(95)
  pass(60_000)
  expect(percent()).toBe(95)
})

test('a delete question shows its token apart, and its action closes it first', () => {
  const onClick = vi.fn()
  act(() =>
    openModal({
      type: 'info',
      title: 'Delete Pod',
      message: 'Delete 2xA100_80GB? Really?',
      actions: [{ label: 'Cancel' }, { label: 'Delete', variant: 'alarm', onClick }],
    }),
  )
  expect(screen.getByRole('alertdialog', { name: 'Delete Pod' })).toBeTruthy()
  expect(screen.getByText('2xA100_80GB').tagName).toBe('CODE')
  fireEvent.click(screen.getByRole('button', { name: 'Delete' }))
  expect(onClick).toHaveBeenCalledOnce()
  expect(screen.queryByRole('alertdialog')).toBeNull()
})
