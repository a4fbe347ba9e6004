package payment

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/fail"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/wallet"
)

// What came of an event.
const (
	credited  = "credited"
	activated = "activated" // a team was made
	repeated  = "repeated"  // the payment is posted, or the team made, already
	closed    = "closed"
	declined  = "declined" // a saved card was
	debited   = "debited"  // a refund or a dispute took money
	returned  = "returned" // what one took is back
	waiting   = "waiting"  // its payment is not credited yet, or none of ours
	noted     = "noted"    // a subscription or a card is to be read
	ignored   = "ignored"  // nothing to act on
	refused   = "refused"  // it does not fit its order
)

const sqlClaimEvent = `
insert into payment_event (id, processor, kind, topup_id, team_checkout_id, subscription_id, outcome, received_at)
values (@id, @processor, @kind, @topup, @team, nullif(@subscription, ''), '', @wall)
on conflict (id) do nothing`

const sqlSetOutcome = `update payment_event set outcome = $2 where id = $1`

// Receive handles an event as the processor sent it: the raw body and its
// signature header. An event that was handled before does nothing. Any other
// error than a fault means that it should be sent again. The faults are
// ErrTooLarge, ErrSignature, ErrMode and ErrNotSetUp.
func (s *Service) Receive(ctx context.Context, body []byte, signature string) error {
	if s.Processor == nil {
		return ErrNotSetUp
	}
	if len(body) > MaxEventSize {
		return ErrTooLarge
	}
	e, err := s.Processor.Verify(body, signature, s.Clock.Wall())
	if err != nil {
		return err
	}
	outcome := repeated
	err = pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		claimed, err := s.claim(ctx, tx, e)
		if err != nil || !claimed {
			return err
		}
		fail.Point("payment.event.claimed")
		if outcome, err = s.handle(ctx, tx, e); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, sqlSetOutcome, e.ID, outcome)
		return err
	})
	if err != nil {
		return fmt.Errorf("receive event %s: %w", e.ID, err)
	}
	fail.Point("payment.event.committed")
	s.report(ctx, e, outcome)
	return nil
}

// handle does what an event asks for.
func (s *Service) handle(ctx context.Context, tx pgx.Tx, e Event) (outcome string, err error) {
	switch {
	case e.Session != nil:
		return s.apply(ctx, tx, *e.Session)
	case e.SubscriptionID != "":
		return s.note(ctx, tx, e.SubscriptionID)
	case e.Case != nil:
		return s.applyCase(ctx, tx, *e.Case)
	case e.Payment != nil:
		return s.applyPayment(ctx, tx, *e.Payment)
	case e.DetachedCardID != "":
		return s.forgotten(ctx, tx, e.DetachedCardID)
	case e.ChangedCardID != "":
		return s.noteCard(ctx, tx, e.ChangedCardID)
	}
	return ignored, nil
}

// claim takes an event for this transaction. It waits for one that is being
// handled elsewhere, and says false when that was committed.
func (s *Service) claim(ctx context.Context, tx pgx.Tx, e Event) (bool, error) {
	args := pgx.NamedArgs{
		"id": e.ID, "processor": s.Processor.Source(), "kind": e.Kind, "topup": nil, "team": nil,
		"subscription": e.SubscriptionID, "wall": s.Clock.Wall(),
	}
	if e.Session != nil && e.Session.OrderID != uuid.Nil {
		order := map[Mode]string{TopUpMode: "topup", SubscriptionMode: "team"}
		if key := order[e.Session.Mode]; key != "" {
			args[key] = e.Session.OrderID
		}
	}
	if e.Payment != nil && e.Payment.OrderID != uuid.Nil {
		args["topup"] = e.Payment.OrderID
	}
	tag, err := tx.Exec(ctx, sqlClaimEvent, args)
	return tag.RowsAffected() == 1, err
}

func (s *Service) report(ctx context.Context, e Event, outcome string) {
	level := slog.LevelInfo
	if outcome == refused {
		level = slog.LevelError
	}
	s.Logger.Log(ctx, level, "a payment event was handled",
		slog.String("event", e.ID), slog.String("kind", e.Kind), slog.String("outcome", outcome))
}

const sqlLockTopUp = `
select id, team_id, amount_usd_micro, processor, status, coalesce(session_id, '') as session_id,
  coalesce(payment_id, '') as payment_id, opened_at, reads, automatic, coalesce(card_id, '') as card_id, asked_at
from topup where id = $1 for update`

// A topUp is a row of table topup.
type topUp struct {
	ID        uuid.UUID     `db:"id"`
	TeamID    uuid.UUID     `db:"team_id"`
	Amount    money.USD     `db:"amount_usd_micro"`
	Processor wallet.Source `db:"processor"`
	Status    string        `db:"status"`
	SessionID string        `db:"session_id"`
	PaymentID string        `db:"payment_id"`
	OpenedAt  time.Time     `db:"opened_at"`
	Reads     int           `db:"reads"`
	Automatic bool          `db:"automatic"`
	CardID    string        `db:"card_id"`  // these two of an automatic one
	AskedAt   *time.Time    `db:"asked_at"` // wall time
}

func lockTopUp(ctx context.Context, tx pgx.Tx, order uuid.UUID) (*topUp, error) {
	rows, err := tx.Query(ctx, sqlLockTopUp, order)
	if err != nil {
		return nil, fmt.Errorf("lock order %s: %w", order, err)
	}
	t, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[topUp])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("lock order %s: %w", order, err)
	}
	return &t, nil
}

const sqlPayTopUp = `
update topup set status = 'paid', payment_id = $2, session_id = nullif($3, ''), closed_at = $4, charged_usd_micro = $5, read_at = null
where id = $1`

const sqlCloseTopUp = `
update topup set status = $2, closed_at = $3, read_at = null where id = $1 and status = 'open'`

// apply does what a session's state asks for, whichever way it was learnt.
func (s *Service) apply(ctx context.Context, tx pgx.Tx, session Session) (outcome string, err error) {
	switch {
	case session.OrderID == uuid.Nil:
		return ignored, nil
	case session.Mode == SubscriptionMode:
		return s.applyTeam(ctx, tx, session)
	case session.Mode == CardMode:
		return s.noteSetup(ctx, tx, session)
	}
	return s.applyTopUp(ctx, tx, session)
}

func (s *Service) applyTopUp(ctx context.Context, tx pgx.Tx, session Session) (outcome string, err error) {
	t, err := lockTopUp(ctx, tx, session.OrderID)
	if err != nil {
		return "", err
	}
	if t == nil {
		return ignored, nil
	}
	switch {
	case !t.fits(session, s.Processor.Source()):
		return refused, nil
	case session.Paid:
		if err := s.notePaidCard(ctx, tx, session); err != nil {
			return "", err
		}
		return s.pay(ctx, tx, t, session)
	case session.Closed && t.Status == "open":
		_, err := tx.Exec(ctx, sqlCloseTopUp, t.ID, "expired", s.Clock.Now())
		return closed, err
	}
	return ignored, nil
}

// fits says whether a session is the one of this order, over its amount.
func (t *topUp) fits(session Session, source wallet.Source) bool {
	return t.Processor == source && !t.Automatic &&
		(t.SessionID == "" || t.SessionID == session.ID) &&
		session.Amount == t.Amount && session.Currency == "usd" &&
		(!session.Paid || session.PaymentID != "") &&
		(t.PaymentID == "" || !session.Paid || t.PaymentID == session.PaymentID)
}

// pay credits a paid order, once. One that was given up is credited too: the
// money is there.
func (s *Service) pay(ctx context.Context, tx pgx.Tx, t *topUp, session Session) (string, error) {
	if t.Status == "paid" {
		return repeated, nil
	}
	if err := lockPayment(ctx, tx, session.PaymentID); err != nil {
		return "", err
	}
	now, charged := s.Clock.Now(), max(session.Total, session.Amount)
	if _, err := tx.Exec(ctx, sqlPayTopUp, t.ID, session.PaymentID, session.ID, now, charged); err != nil {
		return "", fmt.Errorf("close order %s: %w", t.ID, err)
	}
	posted, err := s.Wallet.CreditTx(ctx, tx, wallet.Credit{
		TeamID: t.TeamID, Amount: t.Amount, Source: t.Processor, ReferenceID: session.PaymentID,
		Key: paymentKey(session.PaymentID), Description: t.describe(), At: now,
	})
	if err != nil {
		return "", err
	}
	if !posted {
		return repeated, nil
	}
	return credited, s.settleWaiting(ctx, tx, session.PaymentID, now)
}

// describe is what the history says of its credit.
func (t *topUp) describe() string {
	text := "Credit added by card"
	switch {
	case t.Automatic && t.Processor == wallet.Test:
		text = "Credit added by automatic test payment (no real money)"
	case t.Automatic:
		text = "Credit added by automatic top-up"
	case t.Processor == wallet.Test:
		text = "Credit added by test payment (no real money)"
	}
	return text
}
