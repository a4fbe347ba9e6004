package stripe

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/stripe/stripe-go/v85"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/wallet"
)

// Config says which account of Stripe collects the money.
type Config struct {
	SecretKey     string // sk_test_…, sk_live_… or a restricted rk_…
	WebhookSecret string // whsec_…, of the endpoint /webhooks/stripe
	APIBase       string // empty: Stripe's own
	AutomaticTax  bool   // Stripe Tax computes the tax on top of our prices
	Client        *http.Client
}

// timeout bounds one call, so that no page waits for ever.
const timeout = 20 * time.Second

// A Processor collects money through Stripe. It is safe for concurrent use.
type Processor struct {
	config Config
	client *stripe.Client
	live   bool

	mu     sync.Mutex
	prices map[money.USD]string // the seat's, by what it costs a month
}

var _ payment.Processor = (*Processor)(nil)

// CheckKey says what is wrong with a secret key.
func CheckKey(key string) error {
	for _, prefix := range []string{"sk_test_", "sk_live_", "rk_test_", "rk_live_"} {
		if rest, ok := strings.CutPrefix(key, prefix); ok && rest != "" {
			return nil
		}
	}
	return errors.New("not a secret key of Stripe: it begins with sk_test_, sk_live_, rk_test_ or rk_live_")
}

// IsLive reports whether a key moves real money.
func IsLive(key string) bool {
	return strings.HasPrefix(key, "sk_live_") || strings.HasPrefix(key, "rk_live_")
}

// New returns the processor of an account. It calls nobody.
func New(c Config) *Processor {
	if c.Client == nil {
		c.Client = &http.Client{Timeout: timeout}
	}
	backend := &stripe.BackendConfig{
		HTTPClient: c.Client, EnableTelemetry: stripe.Bool(false), MaxNetworkRetries: stripe.Int64(2),
		LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull}, // its lines name customers
	}
	if c.APIBase != "" {
		backend.URL = stripe.String(c.APIBase)
	}
	return &Processor{
		config: c, live: IsLive(c.SecretKey), prices: map[money.USD]string{},
		client: stripe.NewClient(c.SecretKey, stripe.WithBackends(stripe.NewBackendsWithConfig(backend))),
	}
}

// Source says that credits come from Stripe.
func (p *Processor) Source() wallet.Source { return wallet.Stripe }

// Minimum is the least that Stripe charges in USD.
func (p *Processor) Minimum() money.USD { return 50 * money.Cent }

// Verify checks and reads an event of Stripe's.
func (p *Processor) Verify(body []byte, signature string, wall time.Time) (payment.Event, error) {
	return payment.Open(body, signature, p.config.WebhookSecret, p.live, wall)
}

// CreateCustomer makes the customer that a team is at Stripe. The same team
// and payer again give the same one.
func (p *Processor) CreateCustomer(ctx context.Context, c payment.Customer) (string, error) {
	params := &stripe.CustomerCreateParams{Metadata: map[string]string{teamKey: c.TeamID.String()}}
	if c.Email != "" {
		params.Email = stripe.String(c.Email)
	}
	payer := sha256.Sum256([]byte(c.Email))
	key := "customer:" + c.TeamID.String() + ":" + hex.EncodeToString(payer[:8])
	if c.Lost != "" {
		key += ":" + c.Lost
	}
	params.SetIdempotencyKey(key)
	made, err := p.client.V1Customers.Create(ctx, params)
	if err != nil {
		return "", fmt.Errorf("make the customer of team %s: %w", c.TeamID, err)
	}
	return made.ID, nil
}

// PortalURL is where a customer changes cards and finds invoices.
func (p *Processor) PortalURL(ctx context.Context, customerID, returnURL string) (string, error) {
	session, err := p.client.V1BillingPortalSessions.Create(ctx, &stripe.BillingPortalSessionCreateParams{
		Customer: stripe.String(customerID), ReturnURL: stripe.String(returnURL),
	})
	if err != nil {
		return "", fmt.Errorf("open the portal of customer %s: %w", customerID, lost(err))
	}
	return session.URL, nil
}

// lost names an error that is about a customer that Stripe has no more.
func lost(err error) error {
	var refused *stripe.Error
	if errors.As(err, &refused) && refused.Code == stripe.ErrorCodeResourceMissing && refused.Param == "customer" {
		return fmt.Errorf("%w: %w", payment.ErrNoCustomer, err)
	}
	return err
}
