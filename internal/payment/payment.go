package payment

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/wallet"
)

// Faults of this package.
var (
	// ErrNotSetUp occurs when this installation has no processor.
	ErrNotSetUp = fault.New(fault.Unavailable, "payments_not_set_up", "Payments are not set up.")
	// ErrUnavailable occurs when the processor cannot be reached or refuses.
	ErrUnavailable = fault.New(fault.Unavailable, "payments_unavailable", "The payment provider cannot be reached. Please try again.")
	// ErrNoPortal occurs where the processor has no page for its customers, and
	// for a team that never paid.
	ErrNoPortal = fault.New(fault.Conflict, "no_billing_portal", "There are no cards or invoices of this team yet.")
	// ErrAmount occurs for an amount that is no number of 0.01 to 10,000 with
	// at most 2 decimals, or below the processor's own minimum.
	ErrAmount = fault.New(fault.Invalid, "amount_invalid", "Please enter an amount from $0.01 to $10,000.")
	// ErrOutdated occurs for a request repeated under its Idempotency-Key whose
	// checkout the processor would not open again: its customer is another by now.
	ErrOutdated = fault.New(fault.Conflict, "checkout_outdated", "This checkout can no longer be opened. Please start again with a new one.")
	// ErrTooLarge occurs for an event whose body is over MaxEventSize.
	ErrTooLarge = fault.New(fault.TooLarge, "event_too_large", "The event is too large.")
	// ErrSignature occurs for an event that the processor did not sign, that was
	// signed too long ago or in the future, or that is not an event.
	ErrSignature = fault.New(fault.Malformed, "event_signature", "The event's signature is not valid.")
	// ErrMode occurs for a live event on a test installation, and the reverse.
	ErrMode = fault.New(fault.Malformed, "event_mode", "The event is of another mode than this installation.")
)

// MaxEventSize is the largest body of an event, in bytes.
const MaxEventSize = 256 << 10

// The limits of a top-up (server rule 39).
const (
	MinTopUp = money.Cent
	MaxTopUp = 10_000 * money.Dollar
)

// An Order is a top-up that a processor is asked to collect.
type Order struct {
	ID         uuid.UUID // also the idempotency key
	TeamID     uuid.UUID
	Email      string // of the payer
	CustomerID string // of the team, from CreateCustomer
	Amount     money.USD
	SaveCard   bool // the card is kept for payments without its owner
	SuccessURL string
	CancelURL  string
}

// A TeamOrder is a new team whose monthly subscription a processor is asked to
// collect.
type TeamOrder struct {
	ID         uuid.UUID // also the idempotency key
	TeamID     uuid.UUID
	TeamName   string
	Email      string // of the payer
	CustomerID string // of the team, from CreateCustomer
	Seats      int
	SeatPrice  money.USD // per seat and month
	SuccessURL string
	CancelURL  string
}

// A Customer is what a team is to a processor: its cards, invoices and receipts
// belong to it.
type Customer struct {
	TeamID uuid.UUID
	Email  string // where receipts go: who pays first
	Lost   string // the one it was before, where that is gone; empty: none
}

// ErrNoCustomer is what a processor answers about a customer that it has not, or
// not any more. No user sees it.
var ErrNoCustomer = errors.New("the payment processor has no such customer")

// A Mode is what a checkout sells.
type Mode string

// The modes.
const (
	TopUpMode        Mode = "payment"      // wallet credit, once
	SubscriptionMode Mode = "subscription" // a team's plan, each month
	CardMode         Mode = "setup"        // nothing: a card is saved
)

// A Session is a processor's checkout as it stands.
type Session struct {
	ID             string
	URL            string // where the payer goes; only known when it is made
	Mode           Mode
	OrderID        uuid.UUID // from the metadata we gave it; uuid.Nil: not one of ours
	PaymentID      string    // of a top-up's payment, once there is one
	SubscriptionID string    // of a subscription's checkout, once there is one
	Amount         money.USD // before tax
	Total          money.USD // what the payer pays, with the tax
	Currency       string    // lower case
	Paid           bool
	Closed         bool // it expired or failed: it will never be paid
}

// A Subscription is a team's monthly payment as it stands at the processor.
type Subscription struct {
	ID                 string
	CustomerID         string
	Status             string // Stripe's word
	Seats              int
	AnchorAt           time.Time // the day of the month is this one's
	PeriodStartAt      time.Time
	PeriodEndAt        time.Time // paid, or due to be paid, until here
	CancelsAtPeriodEnd bool
}

// An Event is something a processor told us, verified.
type Event struct {
	ID   string
	Kind string
	// Session is the checkout it is about, SubscriptionID the subscription, Case
	// the refund or the dispute. Without any, and without those below, it is
	// nothing we act on.
	Session        *Session
	SubscriptionID string
	Case           *Case
	Payment        *Payment // of a saved card
	DetachedCardID string   // a card that the processor keeps no more
	ChangedCardID  string   // a card whose number or expiry may be another
}

// A Processor collects money. It is implemented by payment/stripe and by
// payment/testpay.
type Processor interface {
	// Source is where its credits come from in the books, and its name.
	Source() wallet.Source
	// Minimum is the smallest amount it takes.
	Minimum() money.USD
	// CreateCustomer makes the customer of a team, another than the one it lost.
	// What is asked for a customer that is gone fails with ErrNoCustomer.
	CreateCustomer(ctx context.Context, c Customer) (string, error)
	// PortalURL opens the page on which a customer changes cards and finds
	// invoices; it leads back to returnURL. The fault is ErrNoPortal.
	PortalURL(ctx context.Context, customerID, returnURL string) (string, error)
	// CreateTopUp opens a checkout. The same order again gives the same one.
	CreateTopUp(ctx context.Context, o Order) (Session, error)
	// CreateSubscription opens a checkout for a team's subscription. The same
	// order again gives the same one.
	CreateSubscription(ctx context.Context, o TeamOrder) (Session, error)
	// ReadSession asks how a checkout stands.
	ReadSession(ctx context.Context, sessionID string) (Session, error)
	// CreateCardSetup opens a checkout that saves a card for payments without its
	// owner. The same order again gives the same one.
	CreateCardSetup(ctx context.Context, o CardOrder) (Session, error)
	// ReadCard asks how a checkout that saves a card stands, and which card it
	// saved; the zero Card: none yet, or none at all once it is paid.
	ReadCard(ctx context.Context, sessionID string) (Session, Card, error)
	// FindCard asks how a saved card stands; false: it is kept no more.
	FindCard(ctx context.Context, cardID string) (Card, bool, error)
	// DetachCard forgets a card; one that is gone stays so.
	DetachCard(ctx context.Context, cardID string) error
	// Charge has a saved card pay without its owner. The same order again gives
	// the same payment. A card that is declined is a Payment, not an error; after
	// an error nobody knows whether there is one.
	Charge(ctx context.Context, c Charge) (Payment, error)
	// FindPayment asks how the payment of a charge stands, also where the customer
	// is gone; false: there is none.
	FindPayment(ctx context.Context, c Charge) (Payment, bool, error)
	// ReadSubscription asks how a subscription stands.
	ReadSubscription(ctx context.Context, subscriptionID string) (Subscription, error)
	// SetSeats changes how many seats are billed: more at once, if that is paid,
	// fewer from the next month on. Asking for what is so already does nothing.
	SetSeats(ctx context.Context, c SeatChange) error
	// EndSubscription lets a subscription end with the period that is paid for.
	EndSubscription(ctx context.Context, subscriptionID string) error
	// ResumeSubscription lets one that was to end with its period go on.
	ResumeSubscription(ctx context.Context, subscriptionID string) error
	// CancelSubscription ends a subscription at once; one that has ended stays so.
	CancelSubscription(ctx context.Context, subscriptionID string) error
	// ListCases lists the refunds and disputes made since an instant.
	ListCases(ctx context.Context, since time.Time) ([]Case, error)
	// ReceiptURL is where the receipt of a payment is shown to whoever has the
	// address; empty: there is none yet.
	ReceiptURL(ctx context.Context, paymentID string) (string, error)
	// ListMovements lists what the processor's own book has of [from, to), the
	// oldest first.
	ListMovements(ctx context.Context, from, to time.Time) ([]Movement, error)
	// Verify checks an event's signature, age and mode at a wall time, and
	// reads it. The faults are ErrSignature and ErrMode.
	Verify(body []byte, signature string, wall time.Time) (Event, error)
}

// Deps are what a Service is made of.
type Deps struct {
	Pool      *pgxpool.Pool
	Clock     *clock.Clock
	Logger    *slog.Logger
	Wallet    *wallet.Service
	Teams     *team.Service // makes the teams that are paid for
	Jobs      job.Queue     // reads subscriptions at once
	Processor Processor     // nil: payments are not set up
	PublicURL string        // the origin the payer returns to, without a slash
	// OnAutoTopUp tells a team's admins what became of its automatic top-ups, in
	// the transaction in which it happened. nil: nobody is told.
	OnAutoTopUp func(ctx context.Context, tx pgx.Tx, n News) error
	// RestoredAt says since when the database is a restored one that the operator
	// has not confirmed; nil = it is not. It does not know what saved cards paid
	// after its backup, so none is charged until then. nil: it never is.
	RestoredAt func(ctx context.Context) (*time.Time, error)
	// OnEnding tells a team that its plan ends soon because its subscription was
	// ended. The team is locked. nil: nobody is told.
	OnEnding func(ctx context.Context, tx pgx.Tx, e Ending) error
}

// A Service takes payments. It is safe for concurrent use, also by several
// processes.
type Service struct{ Deps }

// New returns the payment service.
func New(d Deps) *Service { return &Service{Deps: d} }
