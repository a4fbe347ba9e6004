// One table of docs/benchmarks.md, in the form that internal/bench reads.
import { writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { join } from 'node:path'

interface Row {
  Bar: string
  Beside: string
  Demand: string
  Measured: string
  Spread: string
  CPU: string
  Load: string
  Verdict: string
}

export class Table {
  private readonly rows: Row[] = []

  constructor(
    private readonly title: string,
    private readonly notes: string[],
  ) {}

  /** A figure that may be at most (or must be at least) so much: the median of several measurements. */
  add(bar: string, values: number[], bound: { most?: number; least?: number }, unit: string): void {
    const sorted = [...values].sort((a, b) => a - b)
    const value = median(sorted)
    const holds = value <= (bound.most ?? Number.POSITIVE_INFINITY) && value >= (bound.least ?? 0)
    const show = (n: number | undefined) => `${Number((n ?? 0).toFixed(3))}`
    this.rows.push({
      Bar: bar,
      Beside: '',
      Demand: bound.most === undefined ? `>= ${bound.least}${unit}` : `<= ${bound.most}${unit}`,
      Measured: `${show(value)}${unit}`,
      Spread: sorted.length > 1 ? `${show(sorted[0])} to ${show(sorted.at(-1))}` : '',
      CPU: '',
      Load: (loadavg()[0] ?? 0).toFixed(2),
      Verdict: holds ? 'met' : '**not met**',
    })
  }

  note(text: string): void {
    this.notes.push(text)
  }

  /** Leaves the table where the report finds it; prints it without such a place. */
  write(name: string): void {
    const text = JSON.stringify({ Title: this.title, Rows: this.rows, Notes: this.notes }, null, 2)
    const out = process.env.HOMEPORT_BENCH_OUT
    if (out) writeFileSync(join(out, `${name}.json`), text)
    else console.log(text)
  }
}

export function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}
