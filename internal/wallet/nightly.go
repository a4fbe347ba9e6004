package wallet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/money"
)

const sqlFindCheck = `select exists (select from ledger_check where day_us = $1)`

const sqlInsertCheck = `
insert into ledger_check (day_us, checked_at, wallets, segments, transfers, problems, imbalance_usd_micro)
values ($1, $2, $3, $4, $5, $6, $7) on conflict (day_us) do nothing`

// told is how many problems of one night the log names; the rest is counted.
const told = 100

// CheckNight recomputes the books once in each UTC day of business time, and
// keeps what it found. Nights that business time jumped over are not made up
// for: the books are looked at as they are. Several nodes may run it; at worst
// they look twice.
func (s *Service) CheckNight(ctx context.Context, now time.Time) error {
	night, done := dayStart(now.UnixMicro()), false
	if err := s.Pool.QueryRow(ctx, sqlFindCheck, night).Scan(&done); err != nil {
		return fmt.Errorf("find the night's check of the books: %w", err)
	}
	if done {
		return nil
	}
	r, err := s.Recompute(ctx)
	if err != nil {
		return err
	}
	_, err = s.Pool.Exec(ctx, sqlInsertCheck, night, now, r.Wallets, r.Segments, r.Transfers, len(r.Problems), r.Imbalance())
	if err != nil {
		return fmt.Errorf("keep the night's check of the books: %w", err)
	}
	for _, p := range r.Problems[:min(told, len(r.Problems))] {
		s.Logger.ErrorContext(ctx, "the books are wrong", slog.String("kind", p.Kind), slog.String("row", p.Row),
			slog.String("team", p.TeamID.String()), slog.String("detail", p.Detail))
	}
	s.Logger.InfoContext(ctx, "the books were recomputed", slog.Int64("wallets", r.Wallets),
		slog.Int64("transfers", r.Transfers), slog.Int("problems", len(r.Problems)))
	return nil
}

// A Check is what the last nightly look at the books found.
type Check struct {
	At                           time.Time `db:"checked_at"` // business time
	Wallets, Segments, Transfers int64     // that were recomputed
	Problems                     int64
	Imbalance                    money.USD `db:"imbalance_usd_micro"`
}

const sqlFindLastCheck = `
select checked_at, wallets, segments, transfers, problems, imbalance_usd_micro
from ledger_check order by day_us desc limit 1`

// LastCheck returns it; false before the first night.
func (s *Service) LastCheck(ctx context.Context) (Check, bool, error) {
	rows, _ := s.Pool.Query(ctx, sqlFindLastCheck)
	c, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Check])
	if errors.Is(err, pgx.ErrNoRows) {
		return Check{}, false, nil
	}
	if err != nil {
		return Check{}, false, fmt.Errorf("find the last check of the books: %w", err)
	}
	return c, true, nil
}
