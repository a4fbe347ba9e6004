package wallet

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/money"
)

// An Exhaustion is the end of a team's money.
type Exhaustion struct {
	At time.Time
	// First says that there was money until then: what runs out again without
	// a payment between is not told again.
	First   bool
	Storage money.Rate // what storage goes on to cost
}

// ExhaustTx ends a team's pod meters at exactly the instant at which its money
// ran out, if that is at or before now. It returns that instant once: the
// caller, who holds the locks of the team's pods, then switches off those that
// were made by it. A payment that came in between keeps its full amount.
func (s *Service) ExhaustTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, now time.Time) (Exhaustion, bool, error) {
	b, err := s.lockAt(ctx, tx, teamID, now)
	if err != nil {
		return Exhaustion{}, false, err
	}
	if b.wallet.SwitchOffUS == nil {
		return Exhaustion{}, false, nil
	}
	e := Exhaustion{At: clock.FromMicros(*b.wallet.SwitchOffUS)}
	e.First = b.wallet.EmptyUS != nil && *b.wallet.EmptyUS == *b.wallet.SwitchOffUS
	e.Storage = b.wallet.Burn
	b.wallet.SwitchOffUS, b.dirty = nil, true
	return e, true, s.save(ctx, tx, b)
}
