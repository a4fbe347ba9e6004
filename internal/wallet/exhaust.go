package wallet

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/clock"
)

const sqlListExhausted = `
select team_id from wallet
where exhausts_us <= $1 or switch_off_us is not null
order by coalesce(switch_off_us, exhausts_us), team_id limit $2`

// DueExhausted lists the teams whose pods have to be switched off by now, in
// the order in which their money ran out. It locks nothing.
func (s *Service) DueExhausted(ctx context.Context, now time.Time, limit int) ([]uuid.UUID, error) {
	rows, err := s.Pool.Query(ctx, sqlListExhausted, now.UnixMicro(), limit)
	if err != nil {
		return nil, fmt.Errorf("list exhausted wallets: %w", err)
	}
	teams, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return nil, fmt.Errorf("list exhausted wallets: %w", err)
	}
	return teams, nil
}

// ExhaustTx ends a team's pod meters at exactly the instant at which its money
// ran out, if that is at or before now. It returns that instant once: the
// caller, who holds the locks of the team's pods, then switches off those that
// were made by it. A payment that came in between keeps its full amount.
func (s *Service) ExhaustTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, now time.Time) (at time.Time, exhausted bool, err error) {
	b, err := s.lockAt(ctx, tx, teamID, now)
	if err != nil {
		return time.Time{}, false, err
	}
	if b.wallet.SwitchOffUS == nil {
		return time.Time{}, false, nil
	}
	at = clock.FromMicros(*b.wallet.SwitchOffUS)
	b.wallet.SwitchOffUS, b.dirty = nil, true
	return at, true, s.save(ctx, tx, b)
}
