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
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/pg"
)

// An Outcome is what the payer chooses.
type Outcome string

// The outcomes.
const (
	Pay     Outcome = "pay"
	Decline Outcome = "decline"  // the card is refused; the checkout stays open
	Cancel  Outcome = "cancel"   // back to where the payer came from
	PayOnce Outcome = "pay_once" // of a subscription: the first month is paid, every renewal declined
)

// Find returns a checkout for its page. The fault is ErrNotFound.
func (p *Processor) Find(ctx context.Context, sessionID string) (*Session, error) {
	return p.find(ctx, sqlFindSession, sessionID)
}

const sqlCompleteSession = `update testpay_session set status = 'complete' where id = $1`

const sqlDeclineSession = `update testpay_session set declines = declines + 1 where id = $1`

const sqlInsertEvent = `
insert into testpay_event (id, session_id, kind, subject, payload, created_at, due_at, copies)
values (@id, @session, @kind, @subject, @payload, @wall, @due, @copies)`

// Act ends, or does not end, a checkout as the payer chose, and returns the
// address that the payer goes to next. When it returns, the events of a paid
// checkout are queued. A checkout that is paid stays paid, and tells of it once:
// whatever is posted again changes nothing. The faults are ErrNotFound,
// ErrExpired and ErrOutcome.
func (p *Processor) Act(ctx context.Context, sessionID string, outcome Outcome) (string, error) {
	next, paid := "", false
	err := pg.InTx(ctx, p.Pool, func(tx pgx.Tx) error {
		s, err := lock(ctx, tx, sessionID)
		if err != nil {
			return err
		}
		switch {
		case !s.offers(outcome):
			return ErrOutcome
		case s.Status == "complete":
			next = s.SuccessURL
		case outcome == Cancel:
			next = s.CancelURL
		case p.expired(s):
			return ErrExpired
		case outcome == Decline:
			next = p.PublicURL + "/test-checkout/" + s.ID + "?declined=1"
			_, err = tx.Exec(ctx, sqlDeclineSession, s.ID)
		default:
			next, paid = s.SuccessURL, true
			err = p.pay(ctx, tx, s, outcome)
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

// offers says whether a payer may choose an outcome.
func (s *Session) offers(outcome Outcome) bool {
	switch outcome {
	case Pay, Decline, Cancel:
		return true
	case PayOnce:
		return s.Mode == payment.SubscriptionMode
	case SaveDeclined, SaveAsks:
		return s.Mode == payment.CardMode || s.SavesCard
	}
	return false
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

// pay marks a session paid and queues what Stripe would tell of it.
func (p *Processor) pay(ctx context.Context, tx pgx.Tx, s *Session, outcome Outcome) error {
	s.Status = "complete"
	if s.Mode == payment.SubscriptionMode {
		card := goodCard
		if outcome == PayOnce {
			card = declinedCard
		}
		return p.subscribe(ctx, tx, s, card)
	}
	if s.Mode == payment.CardMode || s.SavesCard {
		if err := p.save(ctx, tx, s, outcome); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(ctx, sqlCompleteSession, s.ID); err != nil {
		return fmt.Errorf("complete test checkout %s: %w", s.ID, err)
	}
	if s.Mode == payment.TopUpMode {
		if err := p.movePayment(ctx, tx, s); err != nil {
			return err
		}
	}
	return p.tell(ctx, tx, s.ID, stripe.EventTypeCheckoutSessionCompleted, "", s.stripe(false))
}

// tell queues one event of a session about an object. Of one kind and subject
// there is one.
func (p *Processor) tell(ctx context.Context, tx pgx.Tx, sessionID string, kind stripe.EventType, subject string, object any) error {
	wall := p.Clock.Wall()
	eventID := "evt_test_" + draw()
	payload, err := event(eventID, kind, object, wall)
	if err != nil {
		return err
	}
	chaos, err := readChaos(ctx, tx)
	if err != nil {
		return err
	}
	wait := chaos.wait()
	_, err = tx.Exec(ctx, sqlInsertEvent, pgx.NamedArgs{
		"id": eventID, "session": sessionID, "kind": string(kind), "subject": subject, "payload": payload, "wall": wall,
		"due": wall.Add(wait), "copies": chaos.copies(),
	})
	if err != nil {
		return fmt.Errorf("queue an event of test checkout %s: %w", sessionID, err)
	}
	if wait > 0 {
		return nil // DeliverDue finds it
	}
	return p.Jobs.AddTx(ctx, tx, DeliverJob{EventID: eventID}, job.Options{MaxAttempts: 1})
}
