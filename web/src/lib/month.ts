const names = new Intl.DateTimeFormat(undefined, { month: 'long', year: 'numeric', timeZone: 'UTC' })

/** A month as its statement is named, in the reader's language: '2027-03' → 'March 2027'. */
export function monthName(month: string): string {
  return names.format(new Date(`${month}-01T00:00:00Z`))
}

const days = new Intl.DateTimeFormat(undefined, { dateStyle: 'long' })

/** The day of an API instant in the reader's own locale and zone: 'December 21, 2026'. */
export function formatDay(instant: string): string {
  return days.format(new Date(instant))
}

/** The first and the last UTC day of a month: '2028-02' → 2028-02-01 and 2028-02-29. */
export function monthDays(month: string): { from: string; to: string } {
  const [year = 0, number = 0] = month.split('-').map(Number)
  const last = new Date(Date.UTC(year, number, 0)).getUTCDate()
  return { from: `${month}-01`, to: `${month}-${last}` }
}
