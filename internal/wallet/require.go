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
	if err := checkHolds(ctx, tx, teamID); err != nil {
		return err
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

// A Hold keeps a team from starting pods.
type Hold struct {
	TeamID      uuid.UUID
	Kind        string // dispute, spend_limit or frozen
	ReferenceID string // the dispute's id, the month, …
}

const sqlInsertHold = `
insert into wallet_hold (team_id, kind, reference_id, placed_at) values ($1, $2, $3, $4)
on conflict (team_id, kind, reference_id) do nothing`

// HoldTx places a hold. Placing it again does nothing.
func (s *Service) HoldTx(ctx context.Context, tx pgx.Tx, h Hold, now time.Time) error {
	if _, err := tx.Exec(ctx, sqlInsertHold, h.TeamID, h.Kind, h.ReferenceID, now); err != nil {
		return fmt.Errorf("hold team %s: %w", h.TeamID, err)
	}
	return nil
}

const sqlDeleteHold = `delete from wallet_hold where team_id = $1 and kind = $2 and reference_id = $3`

// LiftTx ends a hold, if there is one.
func (s *Service) LiftTx(ctx context.Context, tx pgx.Tx, h Hold) error {
	if _, err := tx.Exec(ctx, sqlDeleteHold, h.TeamID, h.Kind, h.ReferenceID); err != nil {
		return fmt.Errorf("lift a hold of team %s: %w", h.TeamID, err)
	}
	return nil
}

const sqlListHolds = `select distinct kind from wallet_hold where team_id = $1 order by kind`

func checkHolds(ctx context.Context, q pg.Querier, teamID uuid.UUID) error {
	rows, err := q.Query(ctx, sqlListHolds, teamID)
	if err != nil {
		return fmt.Errorf("list holds of team %s: %w", teamID, err)
	}
	kinds, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("list holds of team %s: %w", teamID, err)
	}
	if len(kinds) == 0 {
		return nil
	}
	switch kinds[0] {
	case "dispute":
		return ErrHeld.With("A payment of this team is disputed: new pods have to wait until the dispute is settled.")
	case "frozen":
		return ErrHeld.With("The storage of this team is frozen: add credit to your wallet first.")
	}
	return ErrSpendLimit
}
