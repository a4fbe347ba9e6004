// Package offer owns the catalogue: what can be rented now, at which price. It
// refreshes it from the providers' adapters, prices it for a team's plan, and
// turns what a client asked for into a binding quote.
//
// What always holds: a price is computed here and nowhere else; an offer that
// was not seen for five minutes of wall time is neither shown nor sold; a
// provider that fails hides nothing of another one. Launching machines belongs
// to pod.
package offer

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/mail"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/team"
)

// Times of the catalogue, in wall time.
const (
	VisibleFor = 5 * time.Minute  // an offer is shown so long after it was last seen
	KnownFor   = 24 * time.Hour   // a tuple may be asked for so long after it was last seen
	keptFor    = 48 * time.Hour   // a row is kept so long
	soldOutFor = 2 * time.Minute  // an offer is off sale so long after a launch found it sold out
	askFor     = 30 * time.Second // an adapter may take so long to answer
)

// Currency is the only one.
const Currency = "USD"

// Faults of this package.
var (
	// ErrUnknown occurs when a tuple was not listed in the last 24 hours, or
	// the currency is not USD.
	ErrUnknown = fault.New(fault.Invalid, "offer_invalid", "Please select a valid GPU configuration")
	// ErrDisk occurs when the configuration's disk is too small for the volume.
	ErrDisk = fault.New(fault.Invalid, "offer_disk", "This configuration has too little disk for the volume.")
	// ErrPrice occurs when the price is above what the client would pay.
	ErrPrice = fault.New(fault.Conflict, "offer_price", "The price of this configuration changed.")
	// ErrGone occurs when the configuration is sold out and nothing equal is left.
	ErrGone = fault.New(fault.Conflict, "offer_gone", "This configuration is sold out at the moment.")
)

// A Tuple names an offer as clients echo it.
type Tuple struct {
	Provider     string
	CloudID      string
	GPUType      string
	GPUCount     int
	Socket       string
	Country      string
	DataCenterID string // "" = none, as null on the wire
	IsSpot       bool
	Security     string
}

// TupleOf returns the name of an offer.
func TupleOf(o provider.Offer) Tuple {
	return Tuple{
		Provider: o.Provider, CloudID: o.CloudID, GPUType: o.GPUType, GPUCount: o.GPUCount,
		Socket: o.Socket, Country: o.Country, DataCenterID: o.DataCenterID,
		IsSpot: o.IsSpot, Security: o.Security,
	}
}

// An Offer is something rentable, with its list price.
type Offer struct {
	provider.Offer
	Adapter   string     // key of Deps.Adapters: who launches it
	ListPrice money.Rate // per hour, whole configuration
	SeenAt    time.Time  // wall time
}

// Priced is an offer with its price for one plan.
type Priced struct {
	Offer
	Price money.Rate
}

// An Ask is what a client wants to rent. Everything but the tuple and the
// maximum price is looked up.
type Ask struct {
	Tuple     Tuple
	Plan      team.Plan
	Max       money.Rate // the most the client pays, per hour
	Currency  string     // must be USD
	SizeBytes int64      // of the volume to be mounted
}

// A Quote is a binding price for one offer.
type Quote struct {
	Adapter  string // key of Deps.Adapters
	Offer    provider.Offer
	Rate     money.Rate // what the team pays
	ListRate money.Rate
}

// Deps is what the service stands on.
type Deps struct {
	Pool     *pgxpool.Pool
	Clock    *clock.Clock
	Logger   *slog.Logger
	Adapters map[string]provider.Adapter
	Node     string // names this process in leases; "" = drawn
	// MarkupPermille is our price in thousandths of the upstream's; 0 = 1300.
	// Less than 1/0.84 would sell to Pro teams below cost and is refused.
	MarkupPermille int64
	// Every is how often each adapter is asked at most; adapters without an
	// entry are asked at every Refresh.
	Every   map[string]time.Duration
	Breaker BreakerLimits
	// Operator is the address that is told of a cloud that goes off sale; "" =
	// nobody, and neither Jobs nor Mail is used.
	Operator  string
	PublicURL string // of the pages, which letters link to
	Jobs      job.Queue
	Mail      mail.Sender
}

// A Service keeps and sells the catalogue.
type Service struct {
	Deps
	cache cache
	once  map[string]*sync.Mutex // by adapter: one refresh at a time in this process
}

// New returns the service. It refuses a markup that would sell below cost.
func New(d Deps) (*Service, error) {
	if d.MarkupPermille == 0 {
		d.MarkupPermille = defaultMarkup
	}
	if d.MarkupPermille*proNum < 1000*proDen || d.MarkupPermille > maxMarkup {
		return nil, fmt.Errorf("the markup of %d thousandths is out of range: Pro teams pay 0.84 of the list price", d.MarkupPermille)
	}
	if d.Node == "" {
		d.Node = id.New().String()
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	d.Breaker = d.Breaker.withDefaults()
	s := &Service{Deps: d, once: map[string]*sync.Mutex{}}
	for name := range d.Adapters {
		s.once[name] = &sync.Mutex{}
	}
	return s, nil
}
