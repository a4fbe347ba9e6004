package payment_test

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"homeport.dev/homeport/internal/payment"
)

// A purse is the bank's part that keeps cards and lets them pay. The bank's
// lock guards it.
type purse struct {
	cards    map[string]payment.Card       // by session
	detached map[string]bool               // by card
	paid     map[uuid.UUID]payment.Payment // by order
	asked    []payment.Charge              // every call of Charge
	answer   payment.ChargeState           // of the next payments; empty: they are paid
	pending  bool                          // they are under way instead
	during   func()                        // while Charge is on its way
	forgets  bool                          // Charge fails and nothing comes to be
}

func (b *bank) CreateCardSetup(_ context.Context, o payment.CardOrder) (payment.Session, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return payment.Session{}, errors.New("no route to the bank")
	}
	return b.open(o.CustomerID, payment.Session{Mode: payment.CardMode, OrderID: o.ID}), nil
}

func (b *bank) ReadCard(ctx context.Context, sessionID string) (payment.Session, payment.Card, error) {
	s, err := b.ReadSession(ctx, sessionID)
	b.mu.Lock()
	defer b.mu.Unlock()
	return s, b.cards[sessionID], err
}

// cardOf is a card that some checkout saved.
func (b *bank) cardOf(cardID string) payment.Card {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, card := range b.cards {
		if card.ID == cardID {
			return card
		}
	}
	return payment.Card{}
}

func (b *bank) FindCard(_ context.Context, cardID string) (payment.Card, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return payment.Card{}, false, errors.New("no route to the bank")
	}
	for _, card := range b.cards {
		if card.ID == cardID && !b.detached[cardID] {
			return card, true, nil
		}
	}
	return payment.Card{}, false, nil
}

func (b *bank) DetachCard(_ context.Context, cardID string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return errors.New("no route to the bank")
	}
	b.detached[cardID] = true
	return nil
}

func (b *bank) Charge(_ context.Context, c payment.Charge) (payment.Payment, error) {
	if b.during != nil {
		b.during()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, c)
	if b.down || b.forgets {
		return payment.Payment{}, errors.New("no route to the bank")
	}
	p, known := b.paid[c.ID]
	if !known {
		p = payment.Payment{
			ID: "pi_" + c.ID.String(), OrderID: c.ID, Amount: c.Amount, Total: c.Amount, Currency: "usd", State: payment.PaymentPaid,
		}
		if b.answer != "" {
			p.State = b.answer
		}
		if b.pending {
			p.State = payment.PaymentPending
		}
		b.paid[c.ID] = p
	}
	if b.lost {
		return payment.Payment{}, errors.New("the answer got lost")
	}
	return p, nil
}

func (b *bank) FindPayment(_ context.Context, c payment.Charge) (payment.Payment, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return payment.Payment{}, false, errors.New("no route to the bank")
	}
	p, found := b.paid[c.ID]
	return p, found, nil
}
