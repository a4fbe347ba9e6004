package payment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/pg"
)

const (
	readBatch = 50             // orders of a kind that one sweep reads
	readLimit = time.Hour      // the longest pause between two reads of one order
	abandoned = 26 * time.Hour // an order without a checkout ends: no checkout lives longer
)

// pauseAfter is the pause to the next read of what was read a number of times.
func pauseAfter(reads int) time.Duration { return min(readLimit, firstRead<<min(reads, 10)) }

const sqlListToRead = `select id from topup where read_at <= $1 and processor = $3 and not automatic order by read_at, id limit $2`

// ReadOpen reads the checkouts that have been open for a while, and the
// subscriptions that are due, from the processor, and does what their events
// would have done: a lost event loses no money. One that fails does not keep
// the others waiting.
func (s *Service) ReadOpen(ctx context.Context) error {
	if s.Processor == nil {
		return nil
	}
	return errors.Join(
		s.roll(ctx),
		readDue(ctx, s, sqlListToRead, s.readOne),
		readDue(ctx, s, sqlListTeamOrdersToRead, s.readTeamOrder),
		readDue(ctx, s, sqlListReceiptsToRead, s.readReceipt),
		readDue(ctx, s, sqlListSetupsToRead, s.readSetup),
		readDue(ctx, s, sqlListCardsToDetach, s.detach),
		readDue(ctx, s, sqlListCardsToRead, s.readCard),
		readDue(ctx, s, sqlListSubscriptionsToRead, func(ctx context.Context, subscriptionID string) error {
			return s.ReadSubscription(ctx, SubscriptionJob{ID: subscriptionID})
		}),
	)
}

// readDue reads each that a statement lists. Reading one moves its next read
// on, so that the list ends. Where a whole batch fails, nothing can be had of the
// processor, and the rest waits for the next sweep.
func readDue[ID any](ctx context.Context, s *Service, list string, read func(context.Context, ID) error) error {
	var failed []error
	for {
		rows, err := s.Pool.Query(ctx, list, s.Clock.Wall(), readBatch, s.Processor.Source())
		if err != nil {
			return fmt.Errorf("list what to read of the processor: %w", err)
		}
		due, err := pgx.CollectRows(rows, pgx.RowTo[ID])
		if err != nil {
			return fmt.Errorf("list what to read of the processor: %w", err)
		}
		done := 0
		for _, one := range due {
			if err := read(ctx, one); err != nil {
				failed = append(failed, fmt.Errorf("follow up %v: %w", one, err))
				continue
			}
			done++
		}
		if len(due) < readBatch || done == 0 {
			return errors.Join(failed...)
		}
	}
}

const sqlReadAgain = `update topup set read_at = $2, reads = reads + 1 where id = $1 and status = 'open'`

// readOne moves the order's next read on, asks the processor without a lock,
// and applies the answer.
func (s *Service) readOne(ctx context.Context, order uuid.UUID) error {
	var t *topUp
	wall := s.Clock.Wall()
	err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) (err error) {
		if t, err = lockTopUp(ctx, tx, order); err != nil || t == nil || t.Status != "open" {
			return err
		}
		if wall.Sub(t.OpenedAt) > abandoned && t.SessionID == "" {
			_, err = tx.Exec(ctx, sqlCloseTopUp, order, "failed", s.Clock.Now())
			return err
		}
		_, err = tx.Exec(ctx, sqlReadAgain, order, wall.Add(pauseAfter(t.Reads)))
		return err
	})
	if err != nil || t == nil || t.Status != "open" {
		return err
	}
	return s.applyRead(ctx, t.Processor, t.SessionID)
}
