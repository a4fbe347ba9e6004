package payment

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/wallet"
)

const (
	// giveUpAfter is how long past its end an unpaid team waits for a processor
	// that does not answer.
	giveUpAfter = 72 * time.Hour
	// returnPause is the least time between two readings on return.
	returnPause = 2 * time.Second
	// returnTimeout bounds how long a payer who comes back waits for the
	// processor's answer.
	returnTimeout = 3 * time.Second
)

const sqlListTeamOrdersToRead = `
select id from team_checkout where read_at <= $1 and processor = $3 order by read_at, id limit $2`

const sqlReadTeamOrderAgain = `
update team_checkout set read_at = $2, reads = reads + 1, seen_at = $3 where id = $1 and status = 'open'`

// readTeamOrder moves the order's next read on, asks the processor without a
// lock, and applies the answer.
func (s *Service) readTeamOrder(ctx context.Context, order uuid.UUID) error {
	var t *teamOrder
	err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) (err error) {
		if t, err = lockTeamOrder(ctx, tx, order); err != nil || t == nil || t.Status != "open" {
			return err
		}
		wall := s.Clock.Wall()
		_, err = tx.Exec(ctx, sqlReadTeamOrderAgain, order, wall.Add(pauseAfter(t.Reads)), wall)
		return err
	})
	if err != nil || t == nil || t.Status != "open" {
		return err
	}
	return s.applyRead(ctx, t.Processor, t.SessionID)
}

// applyRead reads a checkout, if it was opened at this processor, and does
// what its event would have done.
func (s *Service) applyRead(ctx context.Context, source wallet.Source, sessionID string) error {
	if s.Processor == nil || s.Processor.Source() != source || sessionID == "" {
		return nil
	}
	session, err := s.Processor.ReadSession(ctx, sessionID)
	if err != nil {
		return fmt.Errorf("read checkout %s: %w", sessionID, err)
	}
	return pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		_, err := s.apply(ctx, tx, session)
		return err
	})
}

const sqlListTeamOrdersDue = `
select id, processor, coalesce(session_id, '') as session_id, expires_at from team_checkout
where status = 'open' and expires_at <= $1 and id > $2 order by id limit $3`

type dueTeamOrder struct {
	ID        uuid.UUID     `db:"id"`
	Processor wallet.Source `db:"processor"`
	SessionID string        `db:"session_id"`
	ExpiresAt time.Time     `db:"expires_at"`
}

// ExpireTeams ends the reserved teams whose day is over by business time. Each
// is read once more before: one that is paid becomes a team instead.
func (s *Service) ExpireTeams(ctx context.Context) error {
	now := s.Clock.Now()
	var failed []error
	for last := uuid.Nil; ; {
		rows, err := s.Pool.Query(ctx, sqlListTeamOrdersDue, now, last, readBatch)
		if err != nil {
			return fmt.Errorf("list unpaid teams: %w", err)
		}
		due, err := pgx.CollectRows(rows, pgx.RowToStructByName[dueTeamOrder])
		if err != nil {
			return fmt.Errorf("list unpaid teams: %w", err)
		}
		for _, t := range due {
			if err := s.expireTeam(ctx, t, now); err != nil {
				failed = append(failed, fmt.Errorf("expire team order %s: %w", t.ID, err))
			}
			last = t.ID
		}
		if len(due) < readBatch {
			return errors.Join(failed...)
		}
	}
}

func (s *Service) expireTeam(ctx context.Context, due dueTeamOrder, now time.Time) error {
	if err := s.applyRead(ctx, due.Processor, due.SessionID); err != nil && now.Sub(due.ExpiresAt) < giveUpAfter {
		return err
	}
	return pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		t, err := lockTeamOrder(ctx, tx, due.ID)
		if err != nil || t == nil || t.Status != "open" {
			return err
		}
		return s.release(ctx, tx, t)
	})
}

const sqlListOpenTeamOrders = `
select id, processor, session_id, opened_at, seen_at from team_checkout
where user_id = $1 and status = 'open' and session_id is not null
order by created_at desc limit 3`

const sqlSeeTeamOrder = `update team_checkout set seen_at = $3 where id = $1 and seen_at = $2 and status = 'open'`

type seenTeamOrder struct {
	ID        uuid.UUID     `db:"id"`
	Processor wallet.Source `db:"processor"`
	SessionID string        `db:"session_id"`
	OpenedAt  time.Time     `db:"opened_at"`
	SeenAt    time.Time     `db:"seen_at"`
}

// Returned reads the checkouts of a person who may just have paid for a team,
// so that the team is there when they come back even where the event is late.
// It asks the less often the older a checkout is. What fails is logged: the
// event, or the next reading, does the same.
func (s *Service) Returned(ctx context.Context, userID uuid.UUID) {
	if s.Processor == nil {
		return
	}
	if err := s.readReturned(ctx, userID); err != nil {
		s.Logger.WarnContext(ctx, "the checkouts of a payer were not read",
			slog.String("user", userID.String()), slog.Any("err", err))
	}
}

func (s *Service) readReturned(ctx context.Context, userID uuid.UUID) error {
	rows, err := s.Pool.Query(ctx, sqlListOpenTeamOrders, userID)
	if err != nil {
		return err
	}
	open, err := pgx.CollectRows(rows, pgx.RowToStructByName[seenTeamOrder])
	if err != nil || len(open) == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, returnTimeout)
	defer cancel()
	wall := s.Clock.Wall()
	for _, t := range open {
		if wall.Sub(t.SeenAt) < max(returnPause, t.SeenAt.Sub(t.OpenedAt)/10) {
			continue
		}
		mine, err := s.Pool.Exec(ctx, sqlSeeTeamOrder, t.ID, t.SeenAt, wall)
		if err != nil {
			return err
		}
		if mine.RowsAffected() == 0 {
			continue // another call is at it
		}
		if err := s.applyRead(ctx, t.Processor, t.SessionID); err != nil {
			return err
		}
	}
	return nil
}
