package wallet

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/clock"
)

// The steps of unpaid storage (server rule 37), in the order in which they are
// taken.
const (
	ArrearsFreeze = iota + 1 // day 7: kept without charge, not attachable
	ArrearsSoon              // day 23: a letter
	ArrearsLast              // day 29: a letter
	ArrearsTrash             // day 30: into the trash, until day 37
	ArrearsEnd               // paid: all of it ends
)

// How long storage goes on after zero, and what follows on which day.
const (
	StorageKeeps = 7 * 24 * time.Hour
	PurgeAfter   = 37 * 24 * time.Hour
)

// arrearsDays are when the steps are due, in days after zero.
var arrearsDays = [...]int64{7, 23, 29, 30}

// arrearsDue is when the next step is due: the end of those that were taken,
// once they were paid, before any other.
func (w *walletRow) arrearsDue() *int64 {
	switch {
	case w.ArrearsEndUS != nil:
		return w.ArrearsEndUS
	case w.ExhaustedUS != nil && int(w.ArrearsStep) < len(arrearsDays):
		at := *w.ExhaustedUS + arrearsDays[w.ArrearsStep]*day
		return &at
	}
	return nil
}

// redeem ends what follows from storage that was not paid. After seven days its
// meters have ended, also where nobody took the first step yet: it counts as
// taken, so that its undoing starts them again.
func (b *book) redeem(now int64) {
	w := &b.wallet
	if x := w.ExhaustedUS; x != nil && w.ArrearsUS == nil && *x+arrearsDays[0]*day <= now {
		w.ArrearsUS, w.ArrearsStep = x, ArrearsFreeze
	}
	w.ExhaustedUS = nil
	if w.ArrearsUS != nil && w.ArrearsEndUS == nil {
		at := max(now, *w.ArrearsUS)
		w.ArrearsEndUS = &at
	}
}

// An Arrears is a step to take.
type Arrears struct {
	Step  int       // ArrearsFreeze …; 0: none is due
	At    time.Time // when it was due; for ArrearsEnd, when it was paid
	Since time.Time // when the balance was used up
	Owed  Balance
}

// ArrearsTx takes a wallet's next step of unpaid storage, if it is due by now,
// and returns it once. The caller, who holds the locks of the team's volumes,
// does it to them in the same transaction.
func (s *Service) ArrearsTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, now time.Time) (Arrears, error) {
	b, err := s.lock(ctx, tx, teamID)
	if err != nil {
		return Arrears{}, err
	}
	w := &b.wallet
	due := w.arrearsDue()
	if due == nil || *due > now.UnixMicro() {
		return Arrears{}, nil
	}
	b.dirty = true
	if w.ArrearsEndUS != nil {
		a := Arrears{Step: ArrearsEnd, At: clock.FromMicros(*due), Since: clock.FromMicros(*w.ArrearsUS)}
		w.ArrearsUS, w.ArrearsEndUS, w.ArrearsStep = nil, nil, 0
		return a, s.save(ctx, tx, b)
	}
	if err := b.roll(*due); err != nil {
		return Arrears{}, err
	}
	since := *w.ExhaustedUS
	w.ArrearsUS = &since
	w.ArrearsStep++
	seen, err := b.at(*due)
	if err != nil {
		return Arrears{}, err
	}
	a := Arrears{
		Step: int(w.ArrearsStep), At: clock.FromMicros(*due), Since: clock.FromMicros(since),
		Owed: seen.balance(clock.FromMicros(*due)),
	}
	return a, s.save(ctx, tx, b)
}

// endStorage ends the meters of storage that nobody paid for, exactly seven
// days after zero, whenever it is looked at.
func (b *book) endStorage(now int64) error {
	w := &b.wallet
	if w.ExhaustedUS == nil || w.Burn == 0 || *w.ExhaustedUS+arrearsDays[0]*day > now {
		return nil
	}
	at := *w.ExhaustedUS + arrearsDays[0]*day
	if err := b.settle(at); err != nil {
		return err
	}
	for i := range b.segments {
		if g := &b.segments[i]; g.Kind == VolumeStorage && g.StoppedUS == nil {
			g.close(at)
		}
	}
	b.refresh(at)
	return nil
}
