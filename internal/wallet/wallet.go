package wallet

import (
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/team"
)

// A Kind says what a segment meters; it is the resource_type of a transaction.
type Kind string

// The kinds of metered resource.
const (
	PodRuntime    Kind = "pod-runtime"
	VolumeStorage Kind = "volume-storage"
)

// ErrInsufficient refuses what needs more balance than the team has.
var ErrInsufficient = fault.New(fault.PaymentRequired, "insufficient_funds", "Insufficient Funds: add credit to your wallet first.")

// ErrHeld refuses new pods while a dispute is open.
var ErrHeld = fault.New(fault.PaymentRequired, "wallet_held", "A payment of this team is disputed: new pods have to wait until the dispute is settled.")

// ErrSpendLimit refuses new pods once the month's spend limit is used up.
var ErrSpendLimit = fault.New(fault.PaymentRequired, "spend_limit", "The monthly spend limit of this team is reached.")

// ErrCursor refuses a page cursor that this server did not make.
var ErrCursor = fault.New(fault.Invalid, "cursor_invalid", "The cursor is not valid.")

// Deps are what a Service is made of.
type Deps struct {
	Pool   *pgxpool.Pool
	Clock  *clock.Clock
	Logger *slog.Logger
	// Limits are the monthly spend limits of the plans; a plan that is not
	// listed has none. nil: Pro 10,000 USD, hobby 1,000 USD.
	Limits map[team.Plan]money.USD
}

// A Service moves and shows the teams' money. It is safe for concurrent use,
// also by several processes.
type Service struct{ Deps }

// New returns the wallet service.
func New(d Deps) *Service {
	if d.Limits == nil {
		d.Limits = map[team.Plan]money.USD{team.Pro: 10_000 * money.Dollar, team.Hobby: 1_000 * money.Dollar}
	}
	return &Service{Deps: d}
}

// A Start opens a segment.
type Start struct {
	TeamID      uuid.UUID
	ResourceID  uuid.UUID
	Kind        Kind
	Rate        money.Rate // 0 is allowed: metered, but without a row
	At          time.Time  // business time
	Description string     // what the resource is, for the user: "2x H100 80GB"
}

// A Source says where a credit came from.
type Source string

// The sources of credit.
const (
	Stripe Source = "stripe"
	Test   Source = "test" // the built-in test checkout
	Promo  Source = "promo"
	// Disputed is where the money of a disputed payment is, and comes back from.
	Disputed Source = "dispute"
)

// A Credit is money that came in.
type Credit struct {
	TeamID      uuid.UUID
	Amount      money.USD // above zero
	Source      Source
	ReferenceID string // the payment's id
	Key         string // idempotency: one key is posted once, for ever
	Description string
	At          time.Time // business time
}

// A Balance is what a team has at one instant.
type Balance struct {
	Balance         money.USD // wallet - receivable - accrued; below zero only by storage or disputes
	SpendingPerHour money.Rate
	LastUpdated     time.Time
	DepletesAt      *time.Time // nil: nothing runs, or not within thousands of years
	HoursRemaining  *float64   // until DepletesAt, never below 0
	MonthSpent      money.USD  // charges less refunds of this UTC month, posted or accrued
	MonthLimit      money.USD  // 0: none
}

// A Transaction is one row of the history a team sees (server rules 32, 34).
type Transaction struct {
	ID           uuid.UUID
	CreatedAt    time.Time
	Type         string    // credit, charge, refund or debit
	ResourceType Kind      // empty unless usage
	ResourceID   uuid.UUID // uuid.Nil unless usage
	Amount       money.USD // signed
	Description  string
	ReferenceID  string // empty: none
}

// A Segment is a stretch of time in which a resource costs one rate.
type Segment struct {
	From time.Time
	To   *time.Time // nil: goes on
	Rate money.Rate
}
