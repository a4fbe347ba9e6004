package payment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
)

// A SubscriptionJob asks for a subscription to be read at once.
type SubscriptionJob struct {
	ID string `json:"id"`
}

// Kind is the job's name in the queue.
func (SubscriptionJob) Kind() string { return "payment_subscription" }

// readDaily is the pause between two readings that nobody asked for.
const readDaily = 24 * time.Hour

const sqlNoteSubscription = `
update subscription set asked = asked + 1, read_at = $3, reads = 0 where id = $1 and processor = $2`

// note has a subscription read because of an event. It stores nothing of the
// event: events come late and in any order, a reading is how things stand. A
// subscription that we do not know yet is read when its team is made.
func (s *Service) note(ctx context.Context, tx pgx.Tx, subscriptionID string) (string, error) {
	tag, err := tx.Exec(ctx, sqlNoteSubscription, subscriptionID, s.Processor.Source(), s.Clock.Wall())
	if err != nil {
		return "", fmt.Errorf("note subscription %s: %w", subscriptionID, err)
	}
	if tag.RowsAffected() == 0 {
		return ignored, nil
	}
	return noted, s.Jobs.AddTx(ctx, tx, SubscriptionJob{ID: subscriptionID}, job.Options{MaxAttempts: 1})
}

const sqlTakeSubscription = `
update subscription set asked = asked + (asked = answered)::int, read_at = @wall::timestamptz + least(@longest::interval,
  @first::interval * power(2, least(reads, 10))), reads = reads + 1
where id = @id and processor = @processor and (asked > answered or read_at <= @wall)
returning asked, end_wanted, team_id`

const sqlStoreSubscription = `
update subscription set status = @status, seats = @seats, customer_id = @customer, anchor_at = @anchor,
  period_start_at = @start, period_end_at = @end, cancels_at_period_end = @cancels, answered = @asked,
  reads = 0, updated_at = @now,
  read_at = case when asked > @asked then read_at when @status in ('canceled', 'incomplete_expired') then null else @next end
where id = @id and answered < @asked`

// ReadSubscription reads how a subscription stands and stores it; where its end
// is wanted, it is cancelled first. Of several readings at once, the one that
// was asked for last is kept.
func (s *Service) ReadSubscription(ctx context.Context, j SubscriptionJob) error {
	if s.Processor == nil {
		return nil
	}
	var asked int64
	var end bool
	var teamID uuid.UUID
	wall := s.Clock.Wall()
	err := s.Pool.QueryRow(ctx, sqlTakeSubscription, pgx.NamedArgs{
		"id": j.ID, "processor": s.Processor.Source(), "wall": wall, "first": firstRead, "longest": readLimit,
	}).Scan(&asked, &end, &teamID)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("take subscription %s: %w", j.ID, err)
	}
	if end {
		if err := s.Processor.CancelSubscription(ctx, j.ID); err != nil {
			return fmt.Errorf("cancel subscription %s: %w", j.ID, err)
		}
	}
	sub, err := s.Processor.ReadSubscription(ctx, j.ID)
	if err != nil {
		return fmt.Errorf("read subscription %s: %w", j.ID, err)
	}
	return s.store(ctx, teamID, sub, pgx.NamedArgs{
		"id": j.ID, "status": sub.Status, "seats": sub.Seats, "customer": sub.CustomerID, "anchor": sub.AnchorAt,
		"start": sub.PeriodStartAt, "end": sub.PeriodEndAt, "cancels": sub.CancelsAtPeriodEnd, "asked": asked,
		"now": s.Clock.Now(), "next": wall.Add(readDaily),
	})
}

// store keeps a reading, unless a newer one is kept, and has the team follow it.
func (s *Service) store(ctx context.Context, teamID uuid.UUID, sub Subscription, reading pgx.NamedArgs) error {
	err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		if err := team.LockRowTx(ctx, tx, teamID); err != nil {
			return err
		}
		before, err := findState(ctx, tx, sub.ID)
		if err != nil {
			return err
		}
		kept, err := tx.Exec(ctx, sqlStoreSubscription, reading)
		if err != nil || kept.RowsAffected() == 0 {
			return err
		}
		return s.follow(ctx, tx, teamID, sub, before)
	})
	if err != nil {
		return fmt.Errorf("store subscription %s: %w", sub.ID, err)
	}
	return nil
}

const sqlListSubscriptionsToRead = `
select id from subscription where read_at <= $1 and processor = $3 order by read_at, id limit $2`

const sqlRollSubscriptions = `
update subscription set asked = asked + 1, read_at = @wall, reads = 0, rolled_at = period_end_at
where processor = @processor and status not in ('canceled', 'incomplete_expired')
  and period_end_at <= @now and (rolled_at is null or rolled_at < period_end_at)`

// roll has every subscription read whose period is over by business time, once
// for each period: the next one, or what became of it, is to be seen.
func (s *Service) roll(ctx context.Context) error {
	_, err := s.Pool.Exec(ctx, sqlRollSubscriptions, pgx.NamedArgs{
		"processor": s.Processor.Source(), "now": s.Clock.Now(), "wall": s.Clock.Wall(),
	})
	if err != nil {
		return fmt.Errorf("look for ended periods: %w", err)
	}
	return nil
}

const sqlEndSubscriptions = `
update subscription set end_wanted = true, asked = asked + 1, read_at = $2, reads = 0
where team_id = $1 and status not in ('canceled', 'incomplete_expired')
returning id`

// EndTeamTx has the subscription of a team cancelled that is being deleted, and
// its card forgotten. The
// processor is called after the transaction, until it has done so.
func (s *Service) EndTeamTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID) error {
	if _, err := s.removeCards(ctx, tx, teamID); err != nil {
		return err
	}
	rows, err := tx.Query(ctx, sqlEndSubscriptions, teamID, s.Clock.Wall())
	if err != nil {
		return fmt.Errorf("end the subscription of team %s: %w", teamID, err)
	}
	ended, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("end the subscription of team %s: %w", teamID, err)
	}
	for _, subscriptionID := range ended {
		if err := s.Jobs.AddTx(ctx, tx, SubscriptionJob{ID: subscriptionID}, job.Options{MaxAttempts: 1}); err != nil {
			return err
		}
	}
	return nil
}
