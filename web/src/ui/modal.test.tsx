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
  fireEvent.pointerMove(screen.getByRole('dialog'))
  pass(20_000)
  expect(screen.getByRole('dialog')).toBeTruthy()
  fireEvent.pointerLeave(screen.getByRole('dialog'))
  pass(5100)
  expect(screen.queryByRole('dialog')).toBeNull()
})

test('a pointer on it holds it open, wherever the focus goes', () => {
  act(() => openModal({ type: 'error', title: 'Broken', message: 'It is.' }))
  const box = screen.getByRole('dialog')
  fireEvent.pointerMove(box)
  act(() => screen.getByRole('button', { name: 'Close' }).focus())
  act(() => box.focus())
  pass(20_000)
  expect(screen.getByRole('dialog')).toBeTruthy()
})

test('a message that follows another has 5 s of its own', () => {
  act(() => openModal({ type: 'error', title: 'Broken', message: 'It is.' }))
  pass(4000)
  act(() => openModal({ type: 'error', title: 'Broken again', message: 'It is.' }))
  pass(4900)
  expect(screen.getByRole('dialog', { name: 'Broken again' })).toBeTruthy()
  pass(200)
  expect(screen.queryByRole('dialog')).toBeNull()
})

test('the focus goes back to what had it, or to the title when that is gone', () => {
  const page = document.createElement('div')
  page.innerHTML = '<h1 tabindex="-1">Page</h1><button>Opener</button>'
  document.body.append(page)
  const opener = screen.getByRole('button', { name: 'Opener' })
  for (const [gone, home] of [
    [false, opener],
    [true, screen.getByRole('heading', { name: 'Page' })],
  ] as const) {
    act(() => opener.focus())
    act(() => openModal({ type: 'loading', title: 'Creating', message: 'Wait.' }))
    act(() => openModal({ type: 'success', title: 'Created', message: 'It is.' }))
    expect(document.activeElement).toBe(screen.getByRole('dialog'))
    if (gone) opener.remove()
    act(closeModal)
    pass(100)
    expect(document.activeElement).toBe(home)
  }
  page.remove()
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
