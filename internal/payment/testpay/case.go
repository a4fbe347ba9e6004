package testpay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stripe/stripe-go/v85"

	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/pg"
)

// Faults of playing a payer's bank.
var (
	// ErrNoPayment occurs for a payment or a case that does not exist.
	ErrNoPayment = fault.New(fault.NotFound, "test_payment_not_found", "There is no such payment.")
	// ErrCase occurs when more would be refunded than was paid, when a payment is
	// disputed again, and when a case is settled another way than it was.
	ErrCase = fault.New(fault.Conflict, "test_case", "This cannot happen to the payment any more.")
)

// A Case is a refund (re_…) or a dispute (dp_…) of a payment.
type Case struct {
	ID        string    `db:"id"`
	SessionID string    `db:"session_id"`
	PaymentID string    `db:"payment_id"`
	Amount    money.USD `db:"amount_usd_micro"`
	Status    string    `db:"status"` // Stripe's word
	CreatedAt time.Time `db:"created_at"`
}

// MarshalJSON writes the case as it would be sent in an event.
func (c Case) MarshalJSON() ([]byte, error) { return json.Marshal(c.stripe()) }

const sqlLockPayment = sessionColumns + ` where payment_id = $1 and status = 'complete' and mode in ('payment', 'charge') for update`

const sqlInsertCase = `
insert into testpay_case (id, session_id, amount_usd_micro, status, created_at) values ($1, $2, $3, $4, $5)`

const sqlSumCases = `
select coalesce(sum(amount_usd_micro) filter (where id like 're\_%' and status <> 'failed'), 0)::bigint as refunded,
  count(*) filter (where id like 'dp\_%') as disputes
from testpay_case where session_id = $1`

// Refund sends a top-up back to the card: an amount of it, as the client wrote
// it, or all that is left. The faults are ErrNoPayment, payment.ErrAmount and
// ErrCase.
func (p *Processor) Refund(ctx context.Context, paymentID, amount string) (Case, error) {
	c := Case{ID: "re_" + draw(), Status: "succeeded"}
	err := p.begin(ctx, paymentID, &c, func(s *Session, refunded money.USD, _ int) (err error) {
		c.Amount = s.Amount - refunded
		if amount != "" {
			if c.Amount, err = payment.ParseAmount(amount); err != nil {
				return err
			}
		}
		if c.Amount <= 0 || c.Amount > s.Amount-refunded {
			return ErrCase.With("%s of %s are refunded already.", refunded, s.Amount)
		}
		return nil
	}, stripe.EventTypeRefundCreated)
	return c, err
}

// Dispute has the card's owner dispute a top-up, once. The faults are
// ErrNoPayment and ErrCase.
func (p *Processor) Dispute(ctx context.Context, paymentID string) (Case, error) {
	c := Case{ID: "dp_" + draw(), Status: "needs_response"}
	err := p.begin(ctx, paymentID, &c, func(s *Session, _ money.USD, disputes int) error {
		c.Amount = s.Amount
		if disputes > 0 {
			return ErrCase.With("This payment is disputed already.")
		}
		return nil
	}, stripe.EventTypeChargeDisputeCreated, stripe.EventTypeChargeDisputeFundsWithdrawn)
	return c, err
}

// begin makes a case of a paid top-up, and queues what Stripe would tell of it.
func (p *Processor) begin(
	ctx context.Context, paymentID string, c *Case,
	check func(s *Session, refunded money.USD, disputes int) error, kinds ...stripe.EventType,
) error {
	return pg.InTx(ctx, p.Pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sqlLockPayment, paymentID)
		if err != nil {
			return fmt.Errorf("lock test payment %s: %w", paymentID, err)
		}
		s, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Session])
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrNoPayment
		}
		if err != nil {
			return fmt.Errorf("lock test payment %s: %w", paymentID, err)
		}
		var refunded money.USD
		var disputes int
		if err := tx.QueryRow(ctx, sqlSumCases, s.ID).Scan(&refunded, &disputes); err != nil {
			return fmt.Errorf("sum the cases of test payment %s: %w", paymentID, err)
		}
		if err := check(&s, refunded, disputes); err != nil {
			return err
		}
		c.SessionID, c.PaymentID, c.CreatedAt = s.ID, paymentID, p.Clock.Now()
		if _, err := tx.Exec(ctx, sqlInsertCase, c.ID, c.SessionID, c.Amount, c.Status, c.CreatedAt); err != nil {
			return fmt.Errorf("make test case %s: %w", c.ID, err)
		}
		if err := p.moveCase(ctx, tx, c, -c.Amount); err != nil {
			return err
		}
		return p.tellCase(ctx, tx, c, kinds...)
	})
}

const sqlLockCase = `
select c.id, c.session_id, s.payment_id, c.amount_usd_micro, c.status, c.created_at
from testpay_case c join testpay_session s on s.id = c.session_id
where c.id = $1 for update of c`

const sqlSettleCase = `update testpay_case set status = $2 where id = $1`

// Settle ends a case: a dispute is won or lost, a refund has failed. Doing it
// again changes nothing. The faults are ErrNoPayment and ErrCase.
func (p *Processor) Settle(ctx context.Context, caseID, status string) (Case, error) {
	var c Case
	err := pg.InTx(ctx, p.Pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sqlLockCase, caseID)
		if err != nil {
			return fmt.Errorf("lock test case %s: %w", caseID, err)
		}
		c, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Case])
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrNoPayment
		}
		if err != nil {
			return fmt.Errorf("lock test case %s: %w", caseID, err)
		}
		from, kinds := "succeeded", []stripe.EventType{stripe.EventTypeRefundFailed}
		if c.isDispute() {
			from, kinds = "needs_response", []stripe.EventType{stripe.EventTypeChargeDisputeClosed}
			if status == "won" {
				kinds = append(kinds, stripe.EventTypeChargeDisputeFundsReinstated)
			}
		}
		switch {
		case c.isDispute() == (status == "failed"):
			return ErrCase.With("A dispute is won or lost, a refund has failed.")
		case c.Status == status:
			return nil
		case c.Status != from:
			return ErrCase.With("This is settled already: %s.", c.Status)
		}
		if _, err := tx.Exec(ctx, sqlSettleCase, c.ID, status); err != nil {
			return fmt.Errorf("settle test case %s: %w", c.ID, err)
		}
		c.Status = status
		if status == "failed" || status == "won" {
			if err := p.moveCase(ctx, tx, &c, c.Amount); err != nil {
				return err
			}
		}
		return p.tellCase(ctx, tx, &c, kinds...)
	})
	return c, err
}

func (c *Case) isDispute() bool { return strings.HasPrefix(c.ID, "dp_") }

func (p *Processor) tellCase(ctx context.Context, tx pgx.Tx, c *Case, kinds ...stripe.EventType) error {
	for _, kind := range kinds {
		if err := p.tell(ctx, tx, c.SessionID, kind, c.ID, c.stripe()); err != nil {
			return err
		}
	}
	return nil
}

// A caseObject is the part of Stripe's refund and dispute that we send.
type caseObject struct {
	ID            string            `json:"id"`
	Object        string            `json:"object"`
	Amount        int64             `json:"amount"`
	Charge        string            `json:"charge"`
	Created       int64             `json:"created"`
	Currency      string            `json:"currency"`
	Livemode      bool              `json:"livemode"`
	Metadata      map[string]string `json:"metadata"`
	PaymentIntent string            `json:"payment_intent"`
	Reason        string            `json:"reason"`
	Status        string            `json:"status"`
}

// stripe is the case as Stripe would write it.
func (c *Case) stripe() caseObject {
	o := caseObject{
		ID: c.ID, Object: "refund", Amount: cents(c.Amount), Charge: "ch_" + strings.TrimPrefix(c.PaymentID, "pi_"),
		Created: c.CreatedAt.Unix(), Currency: "usd", Metadata: map[string]string{}, PaymentIntent: c.PaymentID,
		Reason: "requested_by_customer", Status: c.Status,
	}
	if c.isDispute() {
		o.Object, o.Reason = "dispute", "fraudulent"
	}
	return o
}
