package wallet

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/money"
)

// A Problem is one row of the books that is not as it must be.
type Problem struct {
	Kind   string    `db:"kind"`    // what was checked: balance, receivable, burn, exhaustion, parties, window, gap, total, segment
	Row    string    `db:"row"`     // which row: "wallet <team>", "transfer <id>", "segment <id>"
	TeamID uuid.UUID `db:"team_id"` // whose money; uuid.Nil when the row does not say
	Detail string    `db:"detail"`  // what it holds and what it should hold, in micro-USD
	// Off is by how much money the row is wrong, 0 where it is not an amount
	// that is wrong, or where a total names the same money.
	Off money.USD `db:"off"`
}

// String writes the problem as one line.
func (p Problem) String() string { return p.Row + ": " + p.Detail }

// A Report is what a look at the whole of the books found.
type Report struct {
	Wallets, Segments, Transfers int64
	Problems                     []Problem
}

// Imbalance is how much money is not where it should be, summed up over
// wallets and segments: 0 when the books are right.
func (r Report) Imbalance() money.USD {
	var sum money.USD
	for _, p := range r.Problems {
		sum += p.Off
	}
	return sum
}

const sqlCountBooks = `
select (select count(*) from wallet) as wallets, (select count(*) from segment) as segments,
  (select count(*) from transfer) as transfers`

// sqlTakeTime lets the statements of this look take longer than others may: a
// million transfers are read several times over.
const sqlTakeTime = `select set_config('statement_timeout', '15min', true)`

// Verify recomputes the books from the transfers and the segments, and returns
// each row that is not as it must be. It reads everything.
func (s *Service) Verify(ctx context.Context) ([]Problem, error) {
	r, err := s.Recompute(ctx)
	return r.Problems, err
}

// Recompute recomputes every wallet from its transfers and its segments, in
// one snapshot: it locks nothing, changes nothing and sees no half-done work,
// so it may look at the books of a running server.
func (s *Service) Recompute(ctx context.Context) (Report, error) {
	var r Report
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, s.Pool, snapshot, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sqlTakeTime); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, sqlCountBooks).Scan(&r.Wallets, &r.Segments, &r.Transfers); err != nil {
			return err
		}
		for _, sql := range []string{
			sqlVerifyBalances, sqlVerifyReceivables, sqlVerifyBurn, sqlVerifyExhaustion, sqlVerifyParties,
			sqlVerifyWindows, sqlVerifyTotals, sqlVerifySegments,
		} {
			rows, err := tx.Query(ctx, sql)
			if err != nil {
				return err
			}
			found, err := pgx.CollectRows(rows, pgx.RowToStructByName[Problem])
			if err != nil {
				return err
			}
			r.Problems = append(r.Problems, found...)
		}
		return nil
	})
	if err != nil {
		return Report{}, fmt.Errorf("recompute the books: %w", err)
	}
	return r, nil
}
