package testpay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/stripe/stripe-go/v85"

	"homeport.dev/homeport/internal/fail"
	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/pg"
)

// An Outcome is what the payer chooses.
type Outcome string

// The outcomes.
const (
	Pay     Outcome = "pay"
	Decline Outcome = "decline" // the card is refused; the checkout stays open
	Cancel  Outcome = "cancel"  // back to where the payer came from
)

// Find returns a checkout for its page. The fault is ErrNotFound.
func (p *Processor) Find(ctx context.Context, sessionID string) (*Session, error) {
	return p.find(ctx, sqlFindSession, sessionID)
}

const sqlCompleteSession = `update testpay_session set status = 'complete' where id = $1`

const sqlDeclineSession = `update testpay_session set declines = declines + 1 where id = $1`

const sqlInsertEvent = `
insert into testpay_event (id, session_id, kind, payload, created_at, due_at) values ($1, $2, $3, $4, $5, $5)`

// Act ends, or does not end, a checkout as the payer chose, and returns the
// address that the payer goes to next. When it returns, the event of a paid
// checkout is queued. A checkout that is paid stays paid, and sends one event:
// whatever is posted again changes nothing. The faults are ErrNotFound,
// ErrExpired and ErrOutcome.
func (p *Processor) Act(ctx context.Context, sessionID string, outcome Outcome) (string, error) {
	if outcome != Pay && outcome != Decline && outcome != Cancel {
		return "", ErrOutcome
	}
	next, paid := "", false
	err := pg.InTx(ctx, p.Pool, func(tx pgx.Tx) error {
		s, err := lock(ctx, tx, sessionID)
		if err != nil {
			return err
		}
		switch {
		case s.Status == "complete":
			next = s.SuccessURL
		case outcome == Cancel:
			next = s.CancelURL
		case s.expired(p.Clock.Wall()):
			return ErrExpired
		case outcome == Decline:
			next = p.PublicURL + "/test-checkout/" + s.ID + "?declined=1"
			_, err = tx.Exec(ctx, sqlDeclineSession, s.ID)
		default:
			next, paid = s.SuccessURL, true
			err = p.pay(ctx, tx, s)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	if paid {
		fail.Point("testpay.paid.committed")
		p.Logger.InfoContext(ctx, "a test checkout was paid", slog.String("session", sessionID))
	}
	return next, nil
}

func lock(ctx context.Context, tx pgx.Tx, sessionID string) (*Session, error) {
	rows, err := tx.Query(ctx, sqlLockSession, sessionID)
	if err != nil {
		return nil, fmt.Errorf("lock test checkout %s: %w", sessionID, err)
	}
	s, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Session])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("lock test checkout %s: %w", sessionID, err)
	}
	return &s, nil
}

// pay marks a session paid and queues its event.
func (p *Processor) pay(ctx context.Context, tx pgx.Tx, s *Session) error {
	s.Status = "complete"
	wall := p.Clock.Wall()
	eventID := "evt_test_" + draw()
	payload, err := s.event(eventID, stripe.EventTypeCheckoutSessionCompleted, wall)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, sqlCompleteSession, s.ID); err != nil {
		return fmt.Errorf("pay test checkout %s: %w", s.ID, err)
	}
	_, err = tx.Exec(ctx, sqlInsertEvent, eventID, s.ID, string(stripe.EventTypeCheckoutSessionCompleted), payload, wall)
	if err != nil {
		return fmt.Errorf("queue the event of test checkout %s: %w", s.ID, err)
	}
	return p.Jobs.AddTx(ctx, tx, DeliverJob{EventID: eventID}, job.Options{MaxAttempts: 1})
}
