package wallet

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
)

// RequireTx locks a team's wallet and refuses what needs more than the team
// has: before a pod is made. The faults are ErrHeld, ErrSpendLimit and
// ErrInsufficient, in this order.
func (s *Service) RequireTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, least money.USD, now time.Time) error {
	b, err := s.lock(ctx, tx, teamID)
	if err != nil {
		return err
	}
	switch held, err := isHeld(ctx, tx, teamID); {
	case err != nil:
		return err
	case held:
		return ErrHeld
	}
	seen, err := b.at(now.UnixMicro())
	if err != nil {
		return err
	}
	plan, err := team.PlanTx(ctx, tx, teamID)
	if err != nil {
		return err
	}
	if limit := s.limit(seen, plan); limit > 0 && seen.spentIn(now) >= limit {
		return ErrSpendLimit
	}
	if seen.shown() < least {
		return ErrInsufficient
	}
	return nil
}

// limit is the month's spend limit of a team: the lower of its plan's and its
// own; 0 when there is none.
func (s *Service) limit(b *book, plan team.Plan) money.USD {
	limit := s.PlanLimit(plan)
	if own := b.wallet.MonthLimit; own != nil && (limit == 0 || *own < limit) {
		return *own
	}
	return limit
}

// spentIn is the usage of now's month, in a book that is settled to now.
func (b *book) spentIn(now time.Time) money.USD {
	if b.wallet.MonthUS != monthStart(now.UnixMicro()) {
		return 0
	}
	return b.wallet.MonthSpent
}

// A Hold keeps a team from starting pods while a payment of it is disputed.
type Hold struct {
	TeamID      uuid.UUID
	ReferenceID string // the dispute's id
}

const sqlInsertHold = `
insert into wallet_hold (team_id, kind, reference_id, placed_at) values ($1, 'dispute', $2, $3)
on conflict (team_id, kind, reference_id) do nothing`

// HoldTx places a hold. Placing it again does nothing.
func (s *Service) HoldTx(ctx context.Context, tx pgx.Tx, h Hold, now time.Time) error {
	if _, err := tx.Exec(ctx, sqlInsertHold, h.TeamID, h.ReferenceID, now); err != nil {
		return fmt.Errorf("hold team %s: %w", h.TeamID, err)
	}
	return nil
}

const sqlDeleteHold = `delete from wallet_hold where team_id = $1 and kind = 'dispute' and reference_id = $2`

// LiftTx ends a hold, if there is one.
func (s *Service) LiftTx(ctx context.Context, tx pgx.Tx, h Hold) error {
	if _, err := tx.Exec(ctx, sqlDeleteHold, h.TeamID, h.ReferenceID); err != nil {
		return fmt.Errorf("lift a hold of team %s: %w", h.TeamID, err)
	}
	return nil
}

const sqlIsHeld = `select exists (select from wallet_hold where team_id = $1)`

func isHeld(ctx context.Context, q pg.Querier, teamID uuid.UUID) (held bool, err error) {
	if err := q.QueryRow(ctx, sqlIsHeld, teamID).Scan(&held); err != nil {
		return false, fmt.Errorf("find holds of team %s: %w", teamID, err)
	}
	return held, nil
}

// DisputedTx says whether a payment of the team is disputed.
func (s *Service) DisputedTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID) (bool, error) {
	return isHeld(ctx, tx, teamID)
}
