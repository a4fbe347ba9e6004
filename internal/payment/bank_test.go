package payment_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/wallet"
)

// A bank is the outside world: a processor that remembers its checkouts.
type bank struct {
	mu       sync.Mutex
	sessions map[string]payment.Session
	opened   map[string]string // by order and customer
	subs     map[string]payment.Subscription
	reads    int // of subscriptions

	customers int // made so far
	cases     []payment.Case
	purse
	book []payment.Movement

	receipts      map[string]string // by payment
	askedReceipts int

	seen  func(payment.TeamOrder)
	slow  func() // between a reading and its answer
	down  bool
	broke bool // the card has no money
	lost  bool // what is asked is done, but the answer does not arrive
}

func (b *bank) Source() wallet.Source { return wallet.Stripe }
func (b *bank) Minimum() money.USD    { return 50 * money.Cent }

func (b *bank) CreateCustomer(_ context.Context, c payment.Customer) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return "", errors.New("no route to the bank")
	}
	b.customers++
	return fmt.Sprintf("cus_%d_%s", b.customers, c.TeamID), nil
}

func (b *bank) SetSeats(_ context.Context, c payment.SeatChange) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ok := b.subs[c.SubscriptionID]
	if b.down || !ok {
		return errors.New("no answer from the bank")
	}
	if b.broke && c.Seats > s.Seats {
		return nil // as Stripe does: it waits for a payment
	}
	s.Seats = c.Seats
	b.subs[c.SubscriptionID] = s
	if b.lost {
		return errors.New("the answer got lost")
	}
	return nil
}

func (b *bank) EndSubscription(_ context.Context, subscriptionID string) error {
	return b.setEnding(subscriptionID, true)
}

func (b *bank) ResumeSubscription(_ context.Context, subscriptionID string) error {
	return b.setEnding(subscriptionID, false)
}

func (b *bank) setEnding(subscriptionID string, ending bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ok := b.subs[subscriptionID]
	if b.down || !ok {
		return errors.New("no answer from the bank")
	}
	s.CancelsAtPeriodEnd = ending
	b.subs[subscriptionID] = s
	return nil
}

func (b *bank) ListCases(context.Context, time.Time) ([]payment.Case, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return nil, errors.New("no answer from the bank")
	}
	return b.cases, nil
}

func (b *bank) PortalURL(_ context.Context, customerID, returnURL string) (string, error) {
	return "https://bank.test/portal/" + customerID + "?back=" + url.QueryEscape(returnURL), nil
}

func (b *bank) CreateTopUp(_ context.Context, o payment.Order) (payment.Session, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return payment.Session{}, errors.New("no route to the bank")
	}
	return b.open(o.CustomerID, payment.Session{OrderID: o.ID, Amount: o.Amount, Currency: "usd"}), nil
}

// open gives an order its checkout: one for each customer it comes with, as
// Stripe does by its idempotency key.
func (b *bank) open(customer string, s payment.Session) payment.Session {
	key := s.OrderID.String() + ":" + customer
	if own, ok := b.opened[key]; ok {
		return b.sessions[own]
	}
	s.ID = "cs_" + s.OrderID.String()
	if _, other := b.sessions[s.ID]; other {
		s.ID += "_" + customer
	}
	s.URL = "https://bank.test/" + s.ID
	b.sessions[s.ID], b.opened[key] = s, s.ID
	return s
}

func (b *bank) CreateSubscription(_ context.Context, o payment.TeamOrder) (payment.Session, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return payment.Session{}, errors.New("no route to the bank")
	}
	if b.seen != nil {
		b.seen(o)
	}
	return b.open(o.CustomerID, payment.Session{
		Mode: payment.SubscriptionMode, OrderID: o.ID, Amount: o.SeatPrice * money.USD(o.Seats), Currency: "usd",
	}), nil
}

func (b *bank) ReadSubscription(_ context.Context, subscriptionID string) (payment.Subscription, error) {
	b.mu.Lock()
	b.reads++
	s, ok := b.subs[subscriptionID]
	down := b.down
	b.mu.Unlock()
	if b.slow != nil {
		b.slow()
	}
	if down || !ok {
		return payment.Subscription{}, errors.New("no answer from the bank")
	}
	return s, nil
}

func (b *bank) CancelSubscription(_ context.Context, subscriptionID string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ok := b.subs[subscriptionID]
	if b.down || !ok {
		return errors.New("no answer from the bank")
	}
	s.Status = "canceled"
	b.subs[subscriptionID] = s
	return nil
}

func (b *bank) ReadSession(_ context.Context, sessionID string) (payment.Session, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ok := b.sessions[sessionID]
	if b.down || !ok {
		return payment.Session{}, errors.New("no answer from the bank")
	}
	return s, nil
}

func (b *bank) Verify(body []byte, signature string, wall time.Time) (payment.Event, error) {
	return payment.Open(body, signature, secret, true, wall)
}

// settle marks a checkout paid at the bank.
func (b *bank) settle(sessionID, paymentID string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.sessions[sessionID]
	s.Paid, s.PaymentID = true, paymentID
	b.sessions[sessionID] = s
}
