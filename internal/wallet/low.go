package wallet

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/money"
)

// WatchTx has a wallet tell, as LowDue, when its shown balance falls below an
// amount; nil: never again. It returns the balance at now, and whether that is
// below already: then it tells of the next time only, after it was above.
func (s *Service) WatchTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, below *money.USD, now time.Time) (money.USD, bool, error) {
	b, err := s.lock(ctx, tx, teamID)
	if err != nil {
		return 0, false, err
	}
	seen, err := b.at(now.UnixMicro())
	if err != nil {
		return 0, false, err
	}
	w := &b.wallet
	low := below != nil && seen.shown() < *below
	w.LowBelow, w.LowTold, b.dirty = below, low, true
	b.foreseeLow(now.UnixMicro())
	return seen.shown(), low, s.save(ctx, tx, b)
}

// LowTx says, once, that the balance fell below the amount that WatchTx named,
// by now.
func (s *Service) LowTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, now time.Time) (bool, error) {
	b, err := s.lock(ctx, tx, teamID)
	if err != nil {
		return false, err
	}
	w := &b.wallet
	if w.LowUS == nil || *w.LowUS > now.UnixMicro() {
		return false, nil
	}
	w.LowUS, w.LowTold, b.dirty = nil, true, true
	return true, s.save(ctx, tx, b)
}

// foreseeLow computes when the balance falls below the amount that is watched.
func (b *book) foreseeLow(now int64) {
	w := &b.wallet
	w.LowUS = nil
	if w.LowBelow == nil {
		w.LowTold = false
		return
	}
	now = max(now, w.SettledUS)
	spare := b.shown() - *w.LowBelow // what may still accrue
	if spare >= b.accrued(now) {
		w.LowTold = false
	}
	if !w.LowTold {
		w.LowUS = b.costsBy(now, spare+1)
	}
}
