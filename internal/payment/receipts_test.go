package payment_test

import (
	"context"
	"errors"
	"testing"
	"time"
)

func (b *bank) ReceiptURL(_ context.Context, paymentID string) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.askedReceipts++
	if b.down {
		return "", errors.New("no answer from the bank")
	}
	return b.receipts[paymentID], nil
}

// wantReceipt asserts what a statement links, and how often the bank was asked
// for it.
func (d *desk) wantReceipt(paymentID, want string, asked int) {
	d.t.Helper()
	before := d.bank.askedReceipts
	got, err := d.pay.Receipts(d.t.Context(), []string{paymentID, "pi_unknown"})
	if err != nil {
		d.t.Fatal(err)
	}
	if got[paymentID] != want || got["pi_unknown"] != "" || d.bank.askedReceipts-before != asked {
		d.t.Errorf("receipts %v after %d questions, want %q after %d", got, d.bank.askedReceipts-before, want, asked)
	}
}

func TestReceiptsAreReadOnceTheyAreThere(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.topUp("pi_1")
	open := func() {
		if err := d.pay.ReadOpen(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	open() // the processor has not made it yet
	d.bank.receipts = map[string]string{"pi_1": "https://bank.test/receipt/1"}
	open()
	if d.bank.askedReceipts != 1 {
		t.Errorf("asked %d times at once, want once", d.bank.askedReceipts)
	}
	d.clock.Advance(3 * time.Minute)
	open()
	open()
	if d.bank.askedReceipts != 2 {
		t.Errorf("asked %d times, want twice", d.bank.askedReceipts)
	}
	d.wantReceipt("pi_1", "https://bank.test/receipt/1", 0)
}

func TestAStatementLinksAFreshReceipt(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.topUp("pi_1")
	d.bank.receipts = map[string]string{"pi_1": "https://bank.test/receipt/1"}
	d.wantReceipt("pi_1", "https://bank.test/receipt/1", 1)
	d.wantReceipt("pi_1", "https://bank.test/receipt/1", 0)
	d.clock.Advance(21 * day) // Stripe's addresses end
	d.bank.receipts["pi_1"] = "https://bank.test/receipt/2"
	d.wantReceipt("pi_1", "https://bank.test/receipt/2", 1)
	d.clock.Advance(21 * day)
	d.bank.down = true
	d.wantReceipt("pi_1", "https://bank.test/receipt/2", 1)
}

func TestAPaymentWithoutAReceiptIsGivenUp(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.topUp("pi_1")
	for range 60 {
		if err := d.pay.ReadOpen(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.clock.Advance(time.Hour)
	}
	if d.bank.askedReceipts != 20 {
		t.Errorf("asked %d times, want 20", d.bank.askedReceipts)
	}
}
