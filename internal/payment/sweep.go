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
	readBatch = 50             // orders that one sweep reads
	readLimit = time.Hour      // the longest pause between two reads of one order
	abandoned = 26 * time.Hour // an order without a checkout ends: no checkout lives longer
)

const sqlListToRead = `select id from topup where read_at <= $1 order by read_at, id limit $2`

const sqlReadAgain = `update topup set read_at = $2, reads = reads + 1 where id = $1 and status = 'open'`

// ReadOpen reads the checkouts that have been open for a while from the
// processor, and does what their events would have done: a lost event loses no
// money. An order that fails does not keep the others waiting.
func (s *Service) ReadOpen(ctx context.Context) error {
	if s.Processor == nil {
		return nil
	}
	rows, err := s.Pool.Query(ctx, sqlListToRead, s.Clock.Wall(), readBatch)
	if err != nil {
		return fmt.Errorf("list open checkouts: %w", err)
	}
	orders, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return fmt.Errorf("list open checkouts: %w", err)
	}
	var failed []error
	for _, order := range orders {
		if err := s.readOne(ctx, order); err != nil {
			failed = append(failed, fmt.Errorf("read the checkout of order %s: %w", order, err))
		}
	}
	return errors.Join(failed...)
}

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
		pause := min(readLimit, firstRead<<min(t.Reads, 10))
		_, err = tx.Exec(ctx, sqlReadAgain, order, wall.Add(pause))
		return err
	})
	if err != nil || t == nil || t.Status != "open" || t.SessionID == "" {
		return err
	}
	session, err := s.Processor.ReadSession(ctx, t.SessionID)
	if err != nil {
		return err
	}
	return pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		_, err := s.apply(ctx, tx, session)
		return err
	})
}
