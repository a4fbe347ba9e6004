import { describe, expect, test } from 'vitest'
import type { Transaction } from '@/api/types'
import { transactionsCsv } from './csv'

const row = (over: Partial<Transaction>): Transaction => ({
  id: 't1',
  created_at: '2026-03-01T01:30:00+02:00',
  transaction_type: 'charge',
  resource_type: 'volume-storage',
  resource_id: 'v1',
  amount: -0.1,
  description: 'datasets',
  reference_id: null,
  ...over,
})

/** Reads RFC 4180 back, as a spreadsheet would. */
function parse(text: string): string[][] {
  const lines: string[][] = [[]]
  for (const match of text.matchAll(/(?:"((?:[^"]|"")*)"|([^,\r\n]*))(,|\r\n)/g)) {
    lines.at(-1)?.push(match[1]?.replaceAll('""', '"') ?? match[2] ?? '')
    if (match[3] === '\r\n') lines.push([])
  }
  return lines.slice(0, -1)
}

const cellsOf = (over: Partial<Transaction>) => parse(transactionsCsv([row(over)]))[1] ?? []

describe('a CSV file of transactions', () => {
  test('has a header and one line per row, each ended by CR LF', () => {
    const text = transactionsCsv([row({ id: 'a' }), row({ id: 'b' })])
    expect(text.split('\r\n')).toHaveLength(4)
    expect(text.endsWith('\r\n')).toBe(true)
    expect(text.startsWith('Date (UTC),Type,Amount (USD),Description,Reference,')).toBe(true)
    expect(transactionsCsv([]).split('\r\n')).toHaveLength(2)
  })

  test('states instants in UTC', () => {
    expect(cellsOf({})[0]).toBe('2026-02-28T23:30:00.000Z')
  })

  test.each([
    [5, '5.00'],
    [0, '0.00'],
    [-1.234, '-1.234'],
    [-0.00024, '-0.00024'],
    [-0.000001, '-0.000001'],
    [1000000, '1000000.00'],
  ])('states the amount %s exactly, as a number', (amount, text) => expect(cellsOf({ amount })[2]).toBe(text))

  test.each([
    ['plain', 'plain'],
    ['a, b', 'a, b'],
    ['say "hi"', 'say "hi"'],
    ['two\r\nlines', 'two\r\nlines'],
    ['', ''],
    ['=HYPERLINK("http://evil.test")', '\'=HYPERLINK("http://evil.test")'],
    ['+1', "'+1"],
    ['-2+3', "'-2+3"],
    ['@SUM(A1)', "'@SUM(A1)"],
    ['  =1', "'  =1"],
    ['\t=1', "'\t=1"],
    ['\r=1', "'\r=1"],
    ['a=1', 'a=1'],
  ])('keeps the text %j readable and harmless', (description, cell) =>
    expect(cellsOf({ description })[3]).toBe(cell),
  )

  test('leaves what is missing empty', () => {
    expect(cellsOf({ reference_id: null, resource_type: null, resource_id: null }).slice(4, 7)).toEqual([
      '',
      '',
      '',
    ])
  })
})
