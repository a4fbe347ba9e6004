// Package statement tells a team where its money went: a statement for each
// UTC calendar month, as CSV and PDF, and what pods, volumes, members and days
// cost. It owns no table and no money.
//
// What always holds: opening balance + credits + refunds - charges - debits =
// closing balance, which is the opening balance of the next month; and the
// statement of a month that is over does not change any more, since the books
// are append-only and a refund is entered on the day on which it is given.
package statement
