package testpay

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/seal"
	"homeport.dev/homeport/internal/wallet"
)

// ErrNotFound occurs for a checkout that does not exist.
var ErrNotFound = fault.New(fault.NotFound, "checkout_not_found", "There is no such checkout.")

// ErrExpired occurs when a checkout that expired is acted on.
var ErrExpired = fault.New(fault.Conflict, "checkout_expired", "This checkout has expired.")

// ErrOutcome occurs for an outcome that the checkout does not offer.
var ErrOutcome = fault.New(fault.Invalid, "outcome_invalid", "The outcome must be one that this checkout offers.")

// lifetime is how long a checkout can be paid, as with Stripe.
const lifetime = 24 * time.Hour

// Deps are what a Processor is made of.
type Deps struct {
	Pool       *pgxpool.Pool
	Clock      *clock.Clock
	Jobs       job.Queue
	Box        *seal.Box
	Logger     *slog.Logger
	PublicURL  string       // the origin that serves /test-checkout/
	WebhookURL string       // where events are posted to
	Client     *http.Client // nil: one with a timeout of 10 s
}

// A Processor is the test checkout. It implements payment.Processor and is safe
// for concurrent use, also by several processes.
type Processor struct {
	Deps
	secret string // whsec_…
}

var _ payment.Processor = (*Processor)(nil)

//nolint:gosec // a statement; the secret is its argument
const sqlInsertSecret = `
insert into testpay_secret (single, sealed) values (true, $1) on conflict (single) do nothing`

const sqlReadSecret = `select sealed from testpay_secret`

const secretPurpose = "test checkout webhook secret"

// New returns the test checkout of this installation, drawing its webhook
// secret at the first call.
func New(ctx context.Context, d Deps) (*Processor, error) {
	if d.Client == nil {
		d.Client = &http.Client{Timeout: 10 * time.Second}
	}
	drawn := []byte("whsec_" + id.Token())
	if _, err := d.Pool.Exec(ctx, sqlInsertSecret, d.Box.Seal(drawn, secretPurpose)); err != nil {
		return nil, fmt.Errorf("keep the test checkout's secret: %w", err)
	}
	var sealed []byte
	if err := d.Pool.QueryRow(ctx, sqlReadSecret).Scan(&sealed); err != nil {
		return nil, fmt.Errorf("read the test checkout's secret: %w", err)
	}
	secret, err := d.Box.Open(sealed, secretPurpose)
	if err != nil {
		return nil, fmt.Errorf("open the test checkout's secret: %w", err)
	}
	return &Processor{Deps: d, secret: string(secret)}, nil
}

// Source says that credits come from the test checkout.
func (p *Processor) Source() wallet.Source { return wallet.Test }

// Minimum is one cent.
func (p *Processor) Minimum() money.USD { return money.Cent }

// Verify checks and reads an event that this processor sent.
func (p *Processor) Verify(body []byte, signature string, wall time.Time) (payment.Event, error) {
	return payment.Open(body, signature, p.secret, false, wall)
}

const sqlInsertSession = `
insert into testpay_session (id, order_id, team_id, payment_id, amount_usd_micro, status, success_url, cancel_url, created_at, expires_at,
  mode, team_name, email, quantity, saves_card)
values (@id, @order, @team, @payment, @amount, 'open', @success, @cancel, @at, @expires, @mode, @name, @email, @quantity, @saves)
on conflict (order_id) do nothing`

const sessionColumns = `
select id, order_id, team_id, payment_id, amount_usd_micro, status, success_url, cancel_url, created_at, expires_at,
  mode, team_name, email, quantity, coalesce(customer_id, '') as customer_id,
  coalesce(subscription_id, '') as subscription_id, coalesce(invoice_id, '') as invoice_id,
  coalesce(card_id, '') as card_id, coalesce(failure, '') as failure, saves_card
from testpay_session`

const sqlFindOrder = sessionColumns + ` where order_id = $1`

const sqlFindSession = sessionColumns + ` where id = $1`

const sqlLockSession = sqlFindSession + ` for update`

// A Session is a checkout of this processor.
type Session struct {
	ID         string       `db:"id"` // cs_test_…
	OrderID    uuid.UUID    `db:"order_id"`
	TeamID     uuid.UUID    `db:"team_id"`
	PaymentID  string       `db:"payment_id"` // pi_…
	Amount     money.USD    `db:"amount_usd_micro"`
	Status     string       `db:"status"` // open or complete; of a charge complete or failed
	SuccessURL string       `db:"success_url"`
	CancelURL  string       `db:"cancel_url"`
	CreatedAt  time.Time    `db:"created_at"` // wall time, like ExpiresAt; of a subscription business time
	ExpiresAt  time.Time    `db:"expires_at"`
	Mode       payment.Mode `db:"mode"`

	// Of a subscription's checkout.
	TeamName       string `db:"team_name"`
	Email          string `db:"email"`
	Quantity       int    `db:"quantity"` // seats; 1 for a top-up
	CustomerID     string `db:"customer_id"`
	SubscriptionID string `db:"subscription_id"` // these three once it is paid
	InvoiceID      string `db:"invoice_id"`

	// Of a charge.
	CardID  string `db:"card_id"`
	Failure string `db:"failure"` // Stripe's word; empty: it is paid

	// SavesCard says of a top-up that its card is kept for payments without its
	// owner.
	SavesCard bool `db:"saves_card"`
}

// expired says whether an open session can no longer be paid.
func (p *Processor) expired(s *Session) bool {
	return s.Status == "open" && !p.reading(s.Mode).Before(s.ExpiresAt)
}

// reading is the time that a checkout of a mode lives by: subscriptions follow
// business time, from their checkout on.
func (p *Processor) reading(m payment.Mode) time.Time {
	if m == payment.SubscriptionMode {
		return p.Clock.Now()
	}
	return p.Clock.Wall()
}

// CreateCustomer names the customer that a team is here.
func (p *Processor) CreateCustomer(_ context.Context, c payment.Customer) (string, error) {
	return customerID(c.TeamID), nil
}

func customerID(teamID uuid.UUID) string { return "cus_test_" + hex.EncodeToString(teamID[:]) }

// PortalURL says that there is none: test money has no cards and no invoices.
func (p *Processor) PortalURL(context.Context, string, string) (string, error) {
	return "", payment.ErrNoPortal.With("The test checkout has no page for cards and invoices.")
}

// CreateTopUp opens a checkout for an order, or finds the one it has.
func (p *Processor) CreateTopUp(ctx context.Context, o payment.Order) (payment.Session, error) {
	return p.create(ctx, &Session{
		OrderID: o.ID, TeamID: o.TeamID, Amount: o.Amount, Mode: payment.TopUpMode, Quantity: 1,
		SuccessURL: o.SuccessURL, CancelURL: o.CancelURL, Email: o.Email, SavesCard: o.SaveCard,
	})
}

// CreateSubscription opens a checkout for a new team, or finds the one it has.
func (p *Processor) CreateSubscription(ctx context.Context, o payment.TeamOrder) (payment.Session, error) {
	return p.create(ctx, &Session{
		OrderID: o.ID, TeamID: o.TeamID, Amount: o.SeatPrice * money.USD(o.Seats), Mode: payment.SubscriptionMode,
		Quantity: o.Seats, TeamName: o.TeamName, SuccessURL: o.SuccessURL, CancelURL: o.CancelURL, Email: o.Email,
	})
}

func (p *Processor) create(ctx context.Context, s *Session) (payment.Session, error) {
	at := p.reading(s.Mode)
	_, err := p.Pool.Exec(ctx, sqlInsertSession, pgx.NamedArgs{
		"id": "cs_test_" + draw(), "order": s.OrderID, "team": s.TeamID, "payment": "pi_" + draw(), "amount": s.Amount,
		"success": s.SuccessURL, "cancel": s.CancelURL, "at": at, "expires": at.Add(lifetime),
		"mode": s.Mode, "name": s.TeamName, "email": s.Email, "quantity": s.Quantity,
		"saves": s.SavesCard,
	})
	if err != nil {
		return payment.Session{}, fmt.Errorf("open a test checkout for order %s: %w", s.OrderID, err)
	}
	made, err := p.find(ctx, sqlFindOrder, s.OrderID)
	if err != nil {
		return payment.Session{}, err
	}
	return p.session(made), nil
}

// ReadSession tells how a checkout stands. The fault is ErrNotFound.
func (p *Processor) ReadSession(ctx context.Context, sessionID string) (payment.Session, error) {
	s, err := p.find(ctx, sqlFindSession, sessionID)
	if err != nil {
		return payment.Session{}, err
	}
	return p.session(s), nil
}

// session is what Stripe would answer for one of its own.
func (p *Processor) session(s *Session) payment.Session {
	read := payment.SessionOf(s.stripe(p.expired(s)).read())
	read.URL = p.PublicURL + "/test-checkout/" + s.ID
	return read
}

func (p *Processor) find(ctx context.Context, sql string, key any) (*Session, error) {
	return findIn(ctx, p.Pool, sql, key)
}

func findIn(ctx context.Context, q pg.Querier, sql string, key any) (*Session, error) {
	rows, err := q.Query(ctx, sql, key)
	if err != nil {
		return nil, fmt.Errorf("find test checkout %v: %w", key, err)
	}
	s, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Session])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("find test checkout %v: %w", key, err)
	}
	return &s, nil
}

// draw returns random text for an id. The page shows eight characters of what it
// makes: ids of payments and cases have no more before it than Stripe's.
func draw() string { return hex.EncodeToString(id.Bytes(16)) }
