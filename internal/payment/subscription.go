package payment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/job"
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
returning asked`

const sqlStoreSubscription = `
update subscription set status = @status, seats = @seats, customer_id = @customer, anchor_at = @anchor,
  period_start_at = @start, period_end_at = @end, cancels_at_period_end = @cancels, answered = @asked,
  reads = 0, updated_at = @now,
  read_at = case when asked > @asked then read_at when @status in ('canceled', 'incomplete_expired') then null else @next end
where id = @id and answered < @asked`

// ReadSubscription reads how a subscription stands and stores it. Of several
// readings at once, the one that was asked for last is kept.
func (s *Service) ReadSubscription(ctx context.Context, j SubscriptionJob) error {
	if s.Processor == nil {
		return nil
	}
	var asked int64
	wall := s.Clock.Wall()
	err := s.Pool.QueryRow(ctx, sqlTakeSubscription, pgx.NamedArgs{
		"id": j.ID, "processor": s.Processor.Source(), "wall": wall, "first": firstRead, "longest": readLimit,
	}).Scan(&asked)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("take subscription %s: %w", j.ID, err)
	}
	sub, err := s.Processor.ReadSubscription(ctx, j.ID)
	if err != nil {
		return fmt.Errorf("read subscription %s: %w", j.ID, err)
	}
	_, err = s.Pool.Exec(ctx, sqlStoreSubscription, pgx.NamedArgs{
		"id": j.ID, "status": sub.Status, "seats": sub.Seats, "customer": sub.CustomerID, "anchor": sub.AnchorAt,
		"start": sub.PeriodStartAt, "end": sub.PeriodEndAt, "cancels": sub.CancelsAtPeriodEnd, "asked": asked,
		"now": s.Clock.Now(), "next": wall.Add(readDaily),
	})
	if err != nil {
		return fmt.Errorf("store subscription %s: %w", j.ID, err)
	}
	return nil
}

const sqlListSubscriptionsToRead = `
select id from subscription where read_at <= $1 and processor = $3 order by read_at, id limit $2`
