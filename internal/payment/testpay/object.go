package testpay

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/stripe/stripe-go/v85"

	"homeport.dev/homeport/internal/payment"
)

// The parts of Stripe's objects that we send. Their members keep Stripe's names
// and meanings, and stand where this version of its API has them.

type customerObject struct {
	ID       string            `json:"id"`
	Object   string            `json:"object"`
	Created  int64             `json:"created"`
	Email    *string           `json:"email"`
	Livemode bool              `json:"livemode"`
	Metadata map[string]string `json:"metadata"`
}

func customerOf(s *Session, now time.Time) customerObject {
	c := customerObject{ID: s.CustomerID, Object: "customer", Created: now.Unix(), Metadata: map[string]string{}}
	if s.Email != "" {
		c.Email = &s.Email
	}
	return c
}

type listObject struct {
	Object  string `json:"object"`
	Data    []any  `json:"data"`
	HasMore bool   `json:"has_more"`
	URL     string `json:"url"`
}

type priceObject struct {
	ID         string    `json:"id"`
	Object     string    `json:"object"`
	Active     bool      `json:"active"`
	Currency   string    `json:"currency"`
	LookupKey  string    `json:"lookup_key"`
	Product    string    `json:"product"`
	Recurring  recurring `json:"recurring"`
	Type       string    `json:"type"`
	UnitAmount int64     `json:"unit_amount"`
}

type recurring struct {
	Interval      string `json:"interval"`
	IntervalCount int64  `json:"interval_count"`
	UsageType     string `json:"usage_type"`
}

type itemObject struct {
	ID                 string      `json:"id"`
	Object             string      `json:"object"`
	Created            int64       `json:"created"`
	CurrentPeriodStart int64       `json:"current_period_start"`
	CurrentPeriodEnd   int64       `json:"current_period_end"`
	Price              priceObject `json:"price"`
	Quantity           int         `json:"quantity"`
	Subscription       string      `json:"subscription"`
}

type subscriptionObject struct {
	ID                 string            `json:"id"`
	Object             string            `json:"object"`
	BillingCycleAnchor int64             `json:"billing_cycle_anchor"`
	CancelAtPeriodEnd  bool              `json:"cancel_at_period_end"`
	CanceledAt         *int64            `json:"canceled_at"`
	CollectionMethod   string            `json:"collection_method"`
	Created            int64             `json:"created"`
	Currency           string            `json:"currency"`
	Customer           string            `json:"customer"`
	Items              listObject        `json:"items"`
	LatestInvoice      string            `json:"latest_invoice"`
	Livemode           bool              `json:"livemode"`
	Metadata           map[string]string `json:"metadata"`
	StartDate          int64             `json:"start_date"`
	Status             string            `json:"status"`
}

// metadata is what the order asked to be told again.
func (s *subscription) metadata() map[string]string {
	return map[string]string{payment.TeamOrderKey: s.OrderID.String(), "team_id": s.TeamID.String()}
}

// stripe is the subscription as Stripe would write it.
func (s *subscription) stripe() subscriptionObject {
	item := itemObject{
		ID: s.ItemID, Object: "subscription_item", Created: s.AnchorAt.Unix(),
		CurrentPeriodStart: s.PeriodStartAt.Unix(), CurrentPeriodEnd: s.PeriodEndAt.Unix(),
		Price: priceObject{
			ID: "price_test_pro_seat", Object: "price", Active: true, Currency: "usd", LookupKey: "pro_seat_monthly",
			Product: "prod_test_pro", Recurring: recurring{Interval: "month", IntervalCount: 1, UsageType: "licensed"},
			Type: "recurring", UnitAmount: cents(s.SeatPrice),
		},
		Quantity: s.Quantity, Subscription: s.ID,
	}
	o := subscriptionObject{
		ID: s.ID, Object: "subscription", BillingCycleAnchor: s.AnchorAt.Unix(), CollectionMethod: "charge_automatically",
		CancelAtPeriodEnd: s.CancelsAtPeriodEnd,
		Created:           s.AnchorAt.Unix(), Currency: "usd", Customer: s.CustomerID, LatestInvoice: s.LatestInvoiceID,
		Items:    listObject{Object: "list", Data: []any{item}, URL: "/v1/subscription_items?subscription=" + s.ID},
		Metadata: s.metadata(), StartDate: s.AnchorAt.Unix(), Status: s.Status,
	}
	if s.CanceledAt != nil {
		at := s.CanceledAt.Unix()
		o.CanceledAt = &at
	}
	return o
}

// read is the object as a client of Stripe holds it.
func (o subscriptionObject) read() (*stripe.Subscription, error) {
	raw, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("write test subscription %s: %w", o.ID, err)
	}
	var sub stripe.Subscription
	if err := json.Unmarshal(raw, &sub); err != nil {
		return nil, fmt.Errorf("read test subscription %s: %w", o.ID, err)
	}
	return &sub, nil
}

type invoiceObject struct {
	ID              string            `json:"id"`
	Object          string            `json:"object"`
	AmountDue       int64             `json:"amount_due"`
	AmountPaid      int64             `json:"amount_paid"`
	AmountRemaining int64             `json:"amount_remaining"`
	AttemptCount    int64             `json:"attempt_count"`
	Attempted       bool              `json:"attempted"`
	BillingReason   string            `json:"billing_reason"`
	Created         int64             `json:"created"`
	Currency        string            `json:"currency"`
	Customer        string            `json:"customer"`
	Lines           listObject        `json:"lines"`
	Livemode        bool              `json:"livemode"`
	Metadata        map[string]string `json:"metadata"`
	Parent          invoiceParent     `json:"parent"`
	PeriodEnd       int64             `json:"period_end"`
	PeriodStart     int64             `json:"period_start"`
	Status          string            `json:"status"`
	Subtotal        int64             `json:"subtotal"`
	Total           int64             `json:"total"`
}

type invoiceParent struct {
	SubscriptionDetails subscriptionDetails `json:"subscription_details"`
	Type                string              `json:"type"`
}

type subscriptionDetails struct {
	Metadata     map[string]string `json:"metadata"`
	Subscription string            `json:"subscription"`
}

type lineObject struct {
	ID          string     `json:"id"`
	Object      string     `json:"object"`
	Amount      int64      `json:"amount"`
	Currency    string     `json:"currency"`
	Description string     `json:"description"`
	Invoice     string     `json:"invoice"`
	Period      linePeriod `json:"period"`
	Quantity    int        `json:"quantity"`
}

type linePeriod struct {
	Start int64 `json:"start"`
	End   int64 `json:"end"`
}

// stripe is the invoice as Stripe would write it.
func (i *invoice) stripe(sub *subscription) invoiceObject {
	total := cents(i.Amount)
	o := invoiceObject{
		ID: i.ID, Object: "invoice", AmountDue: total, AttemptCount: 1, Attempted: true, BillingReason: i.Reason,
		Created: i.CreatedAt.Unix(), Currency: "usd", Customer: sub.CustomerID, Metadata: map[string]string{},
		Parent: invoiceParent{
			SubscriptionDetails: subscriptionDetails{Metadata: sub.metadata(), Subscription: sub.ID}, Type: "subscription_details",
		},
		PeriodStart: i.PeriodStartAt.Unix(), PeriodEnd: i.PeriodEndAt.Unix(), Status: i.Status, Subtotal: total, Total: total,
		Lines: listObject{Object: "list", URL: "/v1/invoices/" + i.ID + "/lines", Data: []any{lineObject{
			ID: "il_test_" + i.ID[len("in_test_"):], Object: "line_item", Amount: total, Currency: "usd",
			Description: i.Text, Invoice: i.ID, Quantity: sub.Quantity,
			Period: linePeriod{Start: i.PeriodStartAt.Unix(), End: i.PeriodEndAt.Unix()},
		}}},
	}
	if i.Status == "paid" {
		o.AmountPaid = total
	} else {
		o.AmountRemaining = total
	}
	return o
}
