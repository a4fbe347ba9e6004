package testpay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stripe/stripe-go/v85"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
)

const sqlCompleteSubscription = `
update testpay_session set status = 'complete', customer_id = $2, subscription_id = $3, invoice_id = $4 where id = $1`

const sqlInsertSubscription = `
insert into testpay_subscription (id, session_id, order_id, team_id, customer_id, item_id, quantity, seat_usd_micro,
  status, anchor_at, period, period_start_at, period_end_at, latest_invoice_id, card)
values (@id, @session, @order, @team, @customer, @item, @quantity, @seat, @status, @anchor, @period, @start, @end, @invoice, @card)`

const sqlInsertInvoice = `
insert into testpay_invoice (id, subscription_id, period, payment_id, amount_usd_micro, status, attempts,
  period_start_at, period_end_at, created_at, prorated)
values (@id, @subscription, @period, @payment, @amount, @status, 1, @start, @end, @now, @prorated)`

// A subscription is a team's monthly payment at this processor. Its times are
// business time.
type subscription struct {
	ID              string    `db:"id"` // sub_test_…
	SessionID       string    `db:"session_id"`
	OrderID         uuid.UUID `db:"order_id"`
	TeamID          uuid.UUID `db:"team_id"`
	CustomerID      string    `db:"customer_id"` // cus_test_…
	ItemID          string    `db:"item_id"`     // si_test_…
	Quantity        int       `db:"quantity"`
	SeatPrice       money.USD `db:"seat_usd_micro"`
	Status          string    `db:"status"`
	AnchorAt        time.Time `db:"anchor_at"`
	Period          int       `db:"period"` // months since the anchor
	PeriodStartAt   time.Time `db:"period_start_at"`
	PeriodEndAt     time.Time `db:"period_end_at"`
	LatestInvoiceID string    `db:"latest_invoice_id"`
	Card            string    `db:"card"`
	// CancelsAtPeriodEnd says that no month follows this one.
	CancelsAtPeriodEnd bool       `db:"cancels_at_period_end"`
	CanceledAt         *time.Time `db:"canceled_at"`
}

// The cards of a subscription: one that pays each month, and one that pays the
// first alone.
const (
	goodCard     = "good"
	declinedCard = "declined"
)

// An invoice is one month of a subscription, or the rest of one for more seats.
type invoice struct {
	ID            string // in_test_…
	PaymentID     string // pi_…
	Amount        money.USD
	Status        string
	Period        int
	PeriodStartAt time.Time
	PeriodEndAt   time.Time
	CreatedAt     time.Time
	Reason        string // why Stripe made it
	Text          string // of its only line
	Prorated      bool   // more seats for the rest of the month
}

// subscribe marks a subscription's session paid: its customer, subscription and
// first invoice come into being, and Stripe's events tell of all of them.
func (p *Processor) subscribe(ctx context.Context, tx pgx.Tx, s *Session, card string) error {
	now := p.Clock.Now().Truncate(time.Second) // Stripe counts in seconds
	s.CustomerID, s.SubscriptionID, s.InvoiceID = customerID(s.TeamID), "sub_test_"+draw(), "in_test_"+draw()
	sub := &subscription{
		ID: s.SubscriptionID, SessionID: s.ID, OrderID: s.OrderID, TeamID: s.TeamID, CustomerID: s.CustomerID,
		ItemID: "si_test_" + draw(), Quantity: s.Quantity, SeatPrice: s.Amount / money.USD(s.Quantity), Status: "active",
		AnchorAt: now, PeriodStartAt: now, PeriodEndAt: monthsAfter(now, 1), LatestInvoiceID: s.InvoiceID, Card: card,
	}
	if _, err := tx.Exec(ctx, sqlCompleteSubscription, s.ID, s.CustomerID, s.SubscriptionID, s.InvoiceID); err != nil {
		return fmt.Errorf("pay test checkout %s: %w", s.ID, err)
	}
	_, err := tx.Exec(ctx, sqlInsertSubscription, pgx.NamedArgs{
		"id": sub.ID, "session": sub.SessionID, "order": sub.OrderID, "team": sub.TeamID, "customer": sub.CustomerID,
		"item": sub.ItemID, "quantity": sub.Quantity, "seat": sub.SeatPrice, "status": sub.Status, "anchor": sub.AnchorAt,
		"period": sub.Period, "start": sub.PeriodStartAt, "end": sub.PeriodEndAt, "invoice": sub.LatestInvoiceID,
		"card": sub.Card,
	})
	if err != nil {
		return fmt.Errorf("begin the subscription of test checkout %s: %w", s.ID, err)
	}
	first := &invoice{ID: s.InvoiceID, PaymentID: s.PaymentID, Status: "paid", CreatedAt: now, Reason: "subscription_create"}
	if err := p.bill(ctx, tx, sub, first); err != nil {
		return err
	}
	for _, e := range []struct {
		kind   stripe.EventType
		object any
	}{
		{stripe.EventTypeCustomerCreated, customerOf(s, now)},
		{stripe.EventTypeCustomerSubscriptionCreated, sub.stripe()},
		{stripe.EventTypeInvoicePaid, first.stripe(sub)},
		{stripe.EventTypeCheckoutSessionCompleted, s.stripe(false)},
	} {
		if err := p.tell(ctx, tx, s.ID, e.kind, "", e.object); err != nil {
			return err
		}
	}
	return nil
}

// bill writes the invoice of the subscription's period.
func (p *Processor) bill(ctx context.Context, tx pgx.Tx, sub *subscription, i *invoice) error {
	i.Amount, i.PeriodStartAt = sub.SeatPrice*money.USD(sub.Quantity), sub.PeriodStartAt
	i.Text = fmt.Sprintf("%d × Homeport Pro seat", sub.Quantity)
	return p.charge(ctx, tx, sub, i)
}

// billSeats charges more seats for the rest of the month, to the second, and
// returns the invoice; nil where nothing is left of the month.
func (p *Processor) billSeats(ctx context.Context, tx pgx.Tx, sub *subscription, added int) (*invoice, error) {
	now := p.Clock.Now().Truncate(time.Second)
	left, whole := sub.PeriodEndAt.Sub(now)/time.Second, sub.PeriodEndAt.Sub(sub.PeriodStartAt)/time.Second
	month := cents(sub.SeatPrice) * int64(added)
	rest := money.USD((month*int64(left)+int64(whole)/2)/int64(whole)) * money.Cent
	if left <= 0 || rest == 0 {
		return nil, nil
	}
	i := &invoice{
		ID: "in_test_" + draw(), PaymentID: "pi_" + draw(), Amount: rest, Status: "paid", CreatedAt: now, PeriodStartAt: now,
		Reason: "subscription_update", Prorated: true, Text: fmt.Sprintf("Remaining time of %d × Homeport Pro seat", added),
	}
	return i, p.charge(ctx, tx, sub, i)
}

// charge writes an invoice of the subscription, and that it was paid.
func (p *Processor) charge(ctx context.Context, tx pgx.Tx, sub *subscription, i *invoice) error {
	i.Period, i.PeriodEndAt = sub.Period, sub.PeriodEndAt
	_, err := tx.Exec(ctx, sqlInsertInvoice, pgx.NamedArgs{
		"id": i.ID, "subscription": sub.ID, "period": i.Period, "payment": i.PaymentID, "amount": i.Amount,
		"status": i.Status, "start": i.PeriodStartAt, "end": i.PeriodEndAt, "now": i.CreatedAt,
		"prorated": i.Prorated,
	})
	if err != nil {
		return fmt.Errorf("bill test subscription %s: %w", sub.ID, err)
	}
	if i.Status != "paid" {
		return nil
	}
	return p.move(ctx, tx, payment.Movement{
		Kind: payment.PaymentMoved, PaymentID: i.PaymentID, OrderID: &sub.OrderID, SubscriptionID: sub.ID, Amount: i.Amount,
		At: i.CreatedAt,
	})
}

// monthsAfter is the anchor some months later, on the same day and at the same
// time; in a month without that day on its last.
func monthsAfter(anchor time.Time, months int) time.Time {
	first := time.Date(anchor.Year(), anchor.Month()+time.Month(months), 1,
		anchor.Hour(), anchor.Minute(), anchor.Second(), anchor.Nanosecond(), time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	return first.AddDate(0, 0, min(anchor.Day(), last)-1)
}

const subscriptionColumns = `
select id, session_id, order_id, team_id, customer_id, item_id, quantity, seat_usd_micro, status, anchor_at, period,
  period_start_at, period_end_at, latest_invoice_id, card, canceled_at, cancels_at_period_end
from testpay_subscription`

const sqlFindSubscription = subscriptionColumns + ` where id = $1`

// ReadSubscription tells how a subscription stands. The fault is ErrNotFound.
func (p *Processor) ReadSubscription(ctx context.Context, subscriptionID string) (payment.Subscription, error) {
	rows, err := p.Pool.Query(ctx, sqlFindSubscription, subscriptionID)
	if err != nil {
		return payment.Subscription{}, fmt.Errorf("find test subscription %s: %w", subscriptionID, err)
	}
	sub, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[subscription])
	if errors.Is(err, pgx.ErrNoRows) {
		return payment.Subscription{}, ErrNotFound
	}
	if err != nil {
		return payment.Subscription{}, fmt.Errorf("find test subscription %s: %w", subscriptionID, err)
	}
	read, err := sub.stripe().read()
	if err != nil {
		return payment.Subscription{}, err
	}
	return payment.SubscriptionOf(read)
}
