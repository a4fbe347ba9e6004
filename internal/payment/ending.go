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

// endingTold is how long before the end of a subscription that was ended its
// team is told that list prices begin (server rule 25).
const endingTold = 72 * time.Hour

// An Ending is a subscription that ends with its period.
type Ending struct {
	TeamID uuid.UUID
	At     time.Time // when the plan ends
}

const sqlListEndings = `
select id from subscription
where cancels_at_period_end and status in ('trialing', 'active') and processor = @processor
  and period_end_at > @now and period_end_at <= @soon and end_told_at is distinct from period_end_at
order by period_end_at, id limit @most`

// FollowEndings tells teams whose subscription was ended that its end is near,
// once for each end. Each subscription is read first: it may have been taken
// back. One that cannot be read waits for the next sweep.
func (s *Service) FollowEndings(ctx context.Context) error {
	if s.Processor == nil {
		return nil
	}
	now := s.Clock.Now()
	tried := make(map[string]bool)
	var failed []error
	for {
		rows, err := s.Pool.Query(ctx, sqlListEndings, pgx.NamedArgs{
			"processor": s.Processor.Source(), "now": now, "soon": now.Add(endingTold), "most": graceBatch + len(tried),
		})
		if err != nil {
			return errors.Join(append(failed, fmt.Errorf("list subscriptions that end: %w", err))...)
		}
		due, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return errors.Join(append(failed, fmt.Errorf("list subscriptions that end: %w", err))...)
		}
		found := false
		for _, subscriptionID := range due {
			if tried[subscriptionID] {
				continue
			}
			found, tried[subscriptionID] = true, true
			if err := s.followEnding(ctx, subscriptionID, now); err != nil {
				failed = append(failed, fmt.Errorf("follow the end of subscription %s: %w", subscriptionID, err))
			}
		}
		if !found {
			return errors.Join(failed...)
		}
	}
}

const sqlFindSubscriptionTeam = `select team_id from subscription where id = $1`

const sqlTellEnding = `
update subscription set end_told_at = period_end_at
where id = @id and cancels_at_period_end and status in ('trialing', 'active')
  and period_end_at > @now and period_end_at <= @soon and end_told_at is distinct from period_end_at
returning period_end_at`

func (s *Service) followEnding(ctx context.Context, subscriptionID string, now time.Time) error {
	err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		_, err := s.note(ctx, tx, subscriptionID)
		return err
	})
	if err == nil {
		err = s.ReadSubscription(ctx, SubscriptionJob{ID: subscriptionID})
	}
	if err != nil {
		return err
	}
	return pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		var e Ending
		if err := tx.QueryRow(ctx, sqlFindSubscriptionTeam, subscriptionID).Scan(&e.TeamID); err != nil {
			return err
		}
		if err := team.LockRowTx(ctx, tx, e.TeamID); err != nil {
			return err
		}
		err := tx.QueryRow(ctx, sqlTellEnding, pgx.NamedArgs{
			"id": subscriptionID, "now": now, "soon": now.Add(endingTold),
		}).Scan(&e.At)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil // it goes on, or another node told
		}
		if err != nil || s.OnEnding == nil {
			return err
		}
		e.At = e.At.UTC()
		return s.OnEnding(ctx, tx, e)
	})
}
