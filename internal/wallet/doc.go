// Package wallet keeps a team's money: the books (account, transfer), the
// balance (wallet) and the meters (segment).
//
// The books are double entry and append-only: one row moves an amount from a
// debit account to a credit account, so they balance by construction. Only
// wallets carry a balance row; its lock orders everything that happens to a
// team's money, and a constraint keeps it at zero or above. What a wallet
// cannot cover is owed by the team's receivable account.
//
// There is no billing tick. A segment says that a resource costs a rate from
// one instant to another; its cost at any instant is an exact integer function
// (money.Cost). Usage is posted once per UTC day as the difference between two
// watermarks, so totals do not depend on when, or how often, that happens, and
// what was not posted yet is computed at the read. What a volume cost while it
// lay in the trash is charged when it leaves it, as usage of that day.
//
// What always holds, at every commit:
//
//   - balance = credits - debits of the wallet's account, and never below zero;
//   - shown balance = balance - receivable - what accrued since settled_us
//     = the sum of the rows that Transactions lists;
//   - charges + write-offs = the exact cost of every segment up to settled_us;
//   - exhausts_us is the first microsecond at which the balance reaches zero:
//     pods cost nothing after it, storage goes on into the receivable.
//
// Any method that takes the wallet's lock at or after exhausts_us first does
// what was due at it, so no order of events lets compute run below zero.
// Starting and ending pods is left to packages pod and meter.
package wallet
