package payment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
)

const sqlFindState = `select status, updated_at from subscription where id = $1`

// A state is what was stored of a subscription before a reading.
type state struct {
	Status    string    `db:"status"`
	UpdatedAt time.Time `db:"updated_at"`
}

func findState(ctx context.Context, tx pgx.Tx, subscriptionID string) (state, error) {
	rows, err := tx.Query(ctx, sqlFindState, subscriptionID)
	if err != nil {
		return state{}, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[state])
}

// follow gives a team what its subscription, just read, stands for (server rule
// 25). The team is locked.
func (s *Service) follow(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, sub Subscription, before state) error {
	now := s.Clock.Now()
	switch sub.Status {
	case "trialing", "active":
		return s.Teams.PaidTx(ctx, tx, teamID, sub.ID, sub.Seats, now)
	case "past_due", "unpaid":
		if err := s.Teams.PaidSeatsTx(ctx, tx, teamID, sub.Seats); err != nil {
			return err
		}
		return s.Teams.UnpaidTx(ctx, tx, teamID, sub.ID, failedAt(sub, before, now))
	case "canceled", "incomplete_expired":
		return s.Teams.EndPlanTx(ctx, tx, teamID, sub.ID, now)
	}
	return nil
}

// failedAt is when the payment of a subscription failed, as far as readings
// tell: at the start of the period it is for, but not before it was last seen
// paid. One that never was fails now.
func failedAt(sub Subscription, before state, now time.Time) time.Time {
	at := sub.PeriodStartAt
	if before.Status != "active" && before.Status != "trialing" || at.After(now) {
		return now
	}
	if at.Before(before.UpdatedAt) {
		at = before.UpdatedAt
	}
	return at.UTC()
}

// graceBatch is how many teams one look finds at most.
const graceBatch = 100

// FollowGraces tells teams that their grace ends soon, and ends the plans of
// those whose grace is over. Each subscription is read first: an event of a
// payment may have got lost. One that cannot be read waits for the next sweep.
func (s *Service) FollowGraces(ctx context.Context) error {
	if s.Processor == nil {
		return nil
	}
	now := s.Clock.Now()
	tried := make(map[uuid.UUID]bool)
	var failed []error
	for {
		due, err := s.Teams.DueGraces(ctx, now, graceBatch+len(tried))
		if err != nil {
			return errors.Join(append(failed, err)...)
		}
		found := false
		for _, g := range due {
			if tried[g.TeamID] {
				continue
			}
			found, tried[g.TeamID] = true, true
			if err := s.followGrace(ctx, g, now); err != nil {
				failed = append(failed, fmt.Errorf("follow the grace of team %s: %w", g.TeamID, err))
			}
		}
		if !found {
			return errors.Join(failed...)
		}
	}
}

func (s *Service) followGrace(ctx context.Context, g team.Grace, now time.Time) error {
	err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		_, err := s.note(ctx, tx, g.SubscriptionID)
		return err
	})
	if err == nil {
		err = s.ReadSubscription(ctx, SubscriptionJob{ID: g.SubscriptionID})
	}
	if err != nil {
		return err
	}
	return s.Teams.FollowGrace(ctx, g, now)
}
