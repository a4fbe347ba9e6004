import { describe, expect, it } from 'vitest'
import { crumbsOf, formatBytes, moved, pagesOf, parentOf, rowInSight, rowsAt, shortened } from './files-model'

describe('sizes', () => {
  it.each([
    [0, '0 B'],
    [999, '999 B'],
    [1000, '1 kB'],
    [1234, '1.23 kB'],
    [12_345, '12.3 kB'],
    [123_456, '123 kB'],
    [999_499, '999 kB'],
    [999_600, '1 MB'],
    [1_250_000_000, '1.25 GB'],
    [500_000_000_000, '500 GB'],
    [2_000_000_000_000, '2 TB'],
    [1_100_000_000_000_000, '1100 TB'],
  ])('%d bytes are %s', (bytes, text) => expect(formatBytes(bytes)).toBe(text))
})

describe('paths', () => {
  it('are folders, one in the other', () => {
    expect(crumbsOf('')).toEqual([])
    expect(crumbsOf('runs/100%25/a%FFb')).toEqual([
      { name: 'runs', path: 'runs' },
      { name: '100%', path: 'runs/100%25' },
      { name: 'a\uFFFDb', path: 'runs/100%25/a%FFb' },
    ])
  })
  it('are shortened in the middle, where a folder leads to the rest', () => {
    const short = (path: string) => shortened(crumbsOf(path)).map(({ path }) => path)
    expect(short('a/b/c/d')).toEqual(['a', 'a/b', 'a/b/c', 'a/b/c/d'])
    expect(short('a/b/c/d/e/f')).toEqual(['a', 'a/b/c/d', 'a/b/c/d/e', 'a/b/c/d/e/f'])
  })
  it('have a parent', () => {
    expect(parentOf('a/b/c')).toBe('a/b')
    expect(parentOf('a')).toBe('')
    expect(parentOf('')).toBe('')
  })
})

describe('rows of a long list', () => {
  it('are drawn around those in sight', () => {
    expect(rowsAt(0, 5)).toEqual([0, 5])
    expect(rowsAt(0, 100_000)).toEqual([0, 20])
    expect(rowsAt(48 * 50_000, 100_000)).toEqual([49_992, 50_020])
    expect(rowsAt(48 * 99_999, 100_000)).toEqual([99_991, 100_000])
    expect(rowsAt(-50, 100)).toEqual([0, 20])
    expect(rowsAt(9_999_999, 0)).toEqual([0, 0])
  })
  it('begin with the first that is seen whole', () => {
    expect([0, 1, 48, 49, -50].map(rowInSight)).toEqual([0, 1, 1, 2, 0])
  })
  it('are read in pages', () => {
    expect(pagesOf([0, 20])).toEqual([0])
    expect(pagesOf([190, 210])).toEqual([0, 200])
    expect(pagesOf([0, 0])).toEqual([])
  })
  it('are walked by keys', () => {
    expect(moved('ArrowDown', 0, 3)).toBe(1)
    expect(moved('ArrowDown', 2, 3)).toBe(2)
    expect(moved('ArrowUp', 0, 3)).toBe(0)
    expect(moved('End', 0, 100_000)).toBe(99_999)
    expect(moved('Home', 7, 100_000)).toBe(0)
    expect(moved('PageDown', 95, 100)).toBe(99)
    expect(moved('a', 1, 3)).toBeNull()
    expect(moved('Home', 0, 0)).toBeNull()
  })
})
