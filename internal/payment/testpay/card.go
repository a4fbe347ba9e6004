package testpay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stripe/stripe-go/v85"

	"homeport.dev/homeport/internal/fail"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/pg"
)

// What a payer chooses at a checkout that saves a card, beside Pay, Decline and
// Cancel: how payments without them end.
const (
	SaveDeclined Outcome = "save_declined" // the card is saved, and declined whenever it is charged
	SaveAsks     Outcome = "save_asks"     // the bank wants to see its owner each time
)

// natures says which card each outcome saves.
var natures = map[Outcome]string{Pay: goodCard, SaveDeclined: declinedCard, SaveAsks: askingCard}

// askingCard is one whose bank wants to see its owner.
const askingCard = "authentication"

// cardYears is how long a test card is valid.
const cardYears = 4

// A card is one that a team saved.
type card struct {
	ID         string     `db:"id"` // pm_…
	SessionID  string     `db:"session_id"`
	TeamID     uuid.UUID  `db:"team_id"`
	Nature     string     `db:"nature"`
	CreatedAt  time.Time  `db:"created_at"`
	DetachedAt *time.Time `db:"detached_at"`
	Reissued   int        `db:"reissued"` // how often its bank issued it anew
}

// read is what may be shown of the card. The numbers are those of Stripe's own
// test cards; one issued anew has another.
func (c *card) read() payment.Card {
	last4 := map[string]string{goodCard: "4242", declinedCard: "0341", askingCard: "3184"}[c.Nature]
	if c.Reissued > 0 {
		last4 = "5556"
	}
	return payment.Card{
		ID: c.ID, Brand: "visa", Last4: last4, ExpMonth: int(c.CreatedAt.Month()), ExpYear: c.CreatedAt.Year() + cardYears*(1+c.Reissued),
	}
}

// CreateCardSetup opens a checkout that saves a card, or finds the one that the
// order has.
func (p *Processor) CreateCardSetup(ctx context.Context, o payment.CardOrder) (payment.Session, error) {
	return p.create(ctx, &Session{
		OrderID: o.ID, TeamID: o.TeamID, Mode: payment.CardMode, Quantity: 1,
		SuccessURL: o.SuccessURL, CancelURL: o.CancelURL, Email: o.Email,
	})
}

const sqlInsertCard = `
insert into testpay_card (id, session_id, team_id, nature, created_at) values ($1, $2, $3, $4, $5)`

// save keeps the card of a checkout.
func (p *Processor) save(ctx context.Context, tx pgx.Tx, s *Session, outcome Outcome) error {
	if _, err := tx.Exec(ctx, sqlInsertCard, "pm_"+draw(), s.ID, s.TeamID, natures[outcome], p.Clock.Now()); err != nil {
		return fmt.Errorf("save the card of test checkout %s: %w", s.ID, err)
	}
	return nil
}

const cardColumns = `select id, session_id, team_id, nature, created_at, detached_at, reissued from testpay_card`

const sqlFindCardOf = cardColumns + ` where session_id = $1`

const sqlFindCard = cardColumns + ` where id = $1`

// findCard is nil where there is none.
func findCard(ctx context.Context, q pg.Querier, sql, key string) (*card, error) {
	rows, err := q.Query(ctx, sql, key)
	if err != nil {
		return nil, fmt.Errorf("find the test card of %s: %w", key, err)
	}
	c, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[card])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find the test card of %s: %w", key, err)
	}
	return &c, nil
}

// ReadCard tells how a checkout of a card stands. The fault is ErrNotFound.
func (p *Processor) ReadCard(ctx context.Context, sessionID string) (payment.Session, payment.Card, error) {
	session, err := p.ReadSession(ctx, sessionID)
	if err != nil {
		return payment.Session{}, payment.Card{}, err
	}
	saved, err := findCard(ctx, p.Pool, sqlFindCardOf, sessionID)
	if err != nil || saved == nil {
		return session, payment.Card{}, err
	}
	return session, saved.read(), nil
}

// FindCard tells how a saved card stands; false: it is kept no more.
func (p *Processor) FindCard(ctx context.Context, cardID string) (payment.Card, bool, error) {
	saved, err := findCard(ctx, p.Pool, sqlFindCard, cardID)
	if err != nil || saved == nil || saved.DetachedAt != nil {
		return payment.Card{}, false, err
	}
	return saved.read(), true, nil
}

const sqlReissueCard = `
update testpay_card set reissued = reissued + 1 where id = $1 and detached_at is null returning session_id, reissued`

// Reissue has a saved card's bank issue it anew, under another number and with a
// later expiry, and queues what Stripe would tell of it. The fault is
// ErrNoPayment.
func (p *Processor) Reissue(ctx context.Context, cardID string) (SavedCard, error) {
	err := pg.InTx(ctx, p.Pool, func(tx pgx.Tx) error {
		var sessionID string
		var reissued int
		err := tx.QueryRow(ctx, sqlReissueCard, cardID).Scan(&sessionID, &reissued)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrNoPayment
		}
		if err != nil {
			return fmt.Errorf("issue test card %s anew: %w", cardID, err)
		}
		return p.tell(ctx, tx, sessionID, stripe.EventTypePaymentMethodAutomaticallyUpdated, fmt.Sprintf("%s:%d", cardID, reissued), cardObject{
			ID: cardID, Object: "payment_method", Created: p.Clock.Now().Unix(), Metadata: map[string]string{}, Type: "card",
		})
	})
	if err != nil {
		return SavedCard{}, err
	}
	now, err := findCard(ctx, p.Pool, sqlFindCard, cardID)
	if err != nil {
		return SavedCard{}, err
	}
	return now.saved(), nil
}

// A SavedCard is a card as the dev door tells of it.
type SavedCard struct {
	ID     string `json:"id"`
	TeamID string `json:"team_id"`
	Last4  string `json:"last4"`
	Until  string `json:"until"` // month/year
}

func (c *card) saved() SavedCard {
	shown := c.read()
	return SavedCard{ID: c.ID, TeamID: c.TeamID.String(), Last4: shown.Last4, Until: fmt.Sprintf("%02d/%d", shown.ExpMonth, shown.ExpYear)}
}

const sqlListCards = cardColumns + ` where detached_at is null order by created_at desc, id limit 200`

// cards lists the newest cards that are kept.
func (p *Processor) cards(ctx context.Context) ([]SavedCard, error) {
	rows, err := p.Pool.Query(ctx, sqlListCards)
	if err != nil {
		return nil, fmt.Errorf("list test cards: %w", err)
	}
	kept, err := pgx.CollectRows(rows, pgx.RowToStructByName[card])
	if err != nil {
		return nil, fmt.Errorf("list test cards: %w", err)
	}
	saved := make([]SavedCard, len(kept))
	for i := range kept {
		saved[i] = kept[i].saved()
	}
	return saved, nil
}

const sqlDetachCard = `update testpay_card set detached_at = $2 where id = $1 and detached_at is null returning session_id`

// A cardObject is the part of Stripe's payment_method that we send.
type cardObject struct {
	ID       string            `json:"id"`
	Object   string            `json:"object"`
	Created  int64             `json:"created"`
	Customer *string           `json:"customer"`
	Livemode bool              `json:"livemode"`
	Metadata map[string]string `json:"metadata"`
	Type     string            `json:"type"`
}

// DetachCard forgets a card, and queues what Stripe would tell of it; one that
// is gone stays so.
func (p *Processor) DetachCard(ctx context.Context, cardID string) error {
	return pg.InTx(ctx, p.Pool, func(tx pgx.Tx) error {
		var sessionID string
		err := tx.QueryRow(ctx, sqlDetachCard, cardID, p.Clock.Now()).Scan(&sessionID)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("detach test card %s: %w", cardID, err)
		}
		return p.tell(ctx, tx, sessionID, stripe.EventTypePaymentMethodDetached, cardID, cardObject{
			ID: cardID, Object: "payment_method", Created: p.Clock.Now().Unix(), Metadata: map[string]string{}, Type: "card",
		})
	})
}

const sqlInsertCharge = `
insert into testpay_session (id, order_id, team_id, payment_id, amount_usd_micro, status, success_url, cancel_url, created_at, expires_at,
  mode, card_id, failure)
values (@id, @order, @team, @payment, @amount, @status, '', '', @at, @at, 'charge', @card, nullif(@failure, ''))
on conflict (order_id) do nothing`

// Charge has a saved card pay, as its nature says, or finds the payment that the
// order has. When it returns, the event is queued.
func (p *Processor) Charge(ctx context.Context, c payment.Charge) (payment.Payment, error) {
	var made *Session
	err := pg.InTx(ctx, p.Pool, func(tx pgx.Tx) error {
		saved, err := findCard(ctx, tx, sqlFindCard, c.CardID)
		if err != nil {
			return err
		}
		status, failure, kind := "complete", "", stripe.EventTypePaymentIntentSucceeded
		switch {
		case saved == nil || saved.DetachedAt != nil || saved.TeamID != c.TeamID || saved.Nature == declinedCard:
			status, failure, kind = "failed", "card_declined", stripe.EventTypePaymentIntentPaymentFailed
		case saved.Nature == askingCard:
			status, failure, kind = "failed", "authentication_required", stripe.EventTypePaymentIntentPaymentFailed
		}
		tag, err := tx.Exec(ctx, sqlInsertCharge, pgx.NamedArgs{
			"id": "cs_test_" + draw(), "order": c.ID, "team": c.TeamID, "payment": "pi_" + draw(), "amount": c.Amount,
			"status": status, "at": p.Clock.Wall(), "card": c.CardID, "failure": failure,
		})
		if err != nil {
			return fmt.Errorf("charge test card %s: %w", c.CardID, err)
		}
		if made, err = findIn(ctx, tx, sqlFindOrder, c.ID); err != nil || tag.RowsAffected() == 0 {
			return err
		}
		if made.Status == "complete" {
			if err := p.movePayment(ctx, tx, made); err != nil {
				return err
			}
		}
		return p.tell(ctx, tx, made.ID, kind, "", made.intent())
	})
	if err != nil {
		return payment.Payment{}, err
	}
	fail.Point("testpay.charged.committed")
	return payment.IntentOf(made.intent().read()), nil
}

// FindPayment tells how the payment of an order stands.
func (p *Processor) FindPayment(ctx context.Context, c payment.Charge) (payment.Payment, bool, error) {
	s, err := p.find(ctx, sqlFindOrder, c.ID)
	if errors.Is(err, ErrNotFound) {
		return payment.Payment{}, false, nil
	}
	if err != nil {
		return payment.Payment{}, false, err
	}
	return payment.IntentOf(s.intent().read()), true, nil
}

// An intentObject is the part of Stripe's payment_intent that we send.
type intentObject struct {
	ID               string            `json:"id"`
	Object           string            `json:"object"`
	Amount           int64             `json:"amount"`
	AmountReceived   int64             `json:"amount_received"`
	Created          int64             `json:"created"`
	Currency         string            `json:"currency"`
	Customer         string            `json:"customer"`
	LastPaymentError *intentError      `json:"last_payment_error"`
	Livemode         bool              `json:"livemode"`
	Metadata         map[string]string `json:"metadata"`
	PaymentMethod    *string           `json:"payment_method"`
	Status           string            `json:"status"`
}

type intentError struct {
	Code        string `json:"code"`
	DeclineCode string `json:"decline_code"`
	Message     string `json:"message"`
	Type        string `json:"type"`
}

// intent is a charge as Stripe would write it.
func (s *Session) intent() intentObject {
	o := intentObject{
		ID: s.PaymentID, Object: "payment_intent", Amount: cents(s.Amount), Created: s.CreatedAt.Unix(), Currency: "usd",
		Customer: customerID(s.TeamID), Metadata: map[string]string{payment.AutoOrderKey: s.OrderID.String(), "team_id": s.TeamID.String()},
		Status: "succeeded",
	}
	if s.Status == "complete" {
		o.AmountReceived, o.PaymentMethod = o.Amount, &s.CardID
		return o
	}
	o.Status = "requires_payment_method"
	o.LastPaymentError = &intentError{Code: s.Failure, DeclineCode: "generic_decline", Message: "Your card was declined.", Type: "card_error"}
	if s.Failure == "authentication_required" {
		o.LastPaymentError.DeclineCode, o.LastPaymentError.Message = s.Failure, "Your card was declined. This transaction requires authentication."
	}
	return o
}

// read is the object as a client of Stripe holds it.
func (o intentObject) read() *stripe.PaymentIntent {
	pi := &stripe.PaymentIntent{
		ID: o.ID, Amount: o.Amount, AmountReceived: o.AmountReceived, Currency: stripe.Currency(o.Currency), Metadata: o.Metadata,
		Status: stripe.PaymentIntentStatus(o.Status),
	}
	if e := o.LastPaymentError; e != nil {
		pi.LastPaymentError = &stripe.Error{Code: stripe.ErrorCode(e.Code), DeclineCode: stripe.DeclineCode(e.DeclineCode)}
	}
	return pi
}
