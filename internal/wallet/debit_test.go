package wallet_test

import (
	"context"
	"math/big"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/wallet"
)

// debit takes money out for a case, and says whether it was taken now.
func (h *house) debit(teamID uuid.UUID, caseID string, amount money.USD) (taken bool) {
	h.t.Helper()
	h.do(func(ctx context.Context, tx pgx.Tx) (err error) {
		taken, err = h.w.DebitTx(ctx, tx, wallet.Debit{
			TeamID: teamID, Amount: amount, To: wallet.Test, ReferenceID: caseID, Key: "stripe:re:" + caseID,
			Description: "Refunded to the card", At: h.clock.Now(),
		})
		return err
	})
	return taken
}

func (h *house) sound() {
	h.t.Helper()
	problems, err := h.w.Verify(h.t.Context())
	if err != nil || len(problems) > 0 {
		h.t.Errorf("the books are not sound: %v, %v", problems, err)
	}
}

func TestADebitIsTakenOnceAndShownWhole(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	scope := h.scope()
	h.credit(scope.TeamID(), 10*money.Dollar)
	if !h.debit(scope.TeamID(), "re_1", 4*money.Dollar) || h.debit(scope.TeamID(), "re_1", 4*money.Dollar) {
		t.Error("one debit was not taken exactly once")
	}
	h.wantBalance(scope, 6*money.Dollar)
	h.debit(scope.TeamID(), "re_2", 9*money.Dollar) // more than there is
	h.wantBalance(scope, -3*money.Dollar)
	h.credit(scope.TeamID(), 5*money.Dollar) // what is owed is paid first
	h.wantBalance(scope, 2*money.Dollar)
	var debits []money.USD
	for _, row := range h.history(scope, 100) {
		if row.Type == "debit" {
			debits = append(debits, row.Amount)
		}
	}
	if len(debits) != 2 || debits[0] != -9*money.Dollar || debits[1] != -4*money.Dollar {
		t.Errorf("the history shows the debits %v, want the whole of each", debits)
	}
	h.sound()
}

func TestADebitWithOtherValuesIsRefused(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	scope := h.scope()
	h.credit(scope.TeamID(), 10*money.Dollar)
	h.debit(scope.TeamID(), "re_1", money.Dollar)
	for _, d := range []wallet.Debit{
		{TeamID: scope.TeamID(), Amount: 2 * money.Dollar, To: wallet.Test, ReferenceID: "re_1", Key: "stripe:re:re_1"},
		{TeamID: scope.TeamID(), Amount: money.Dollar, To: "nobody", ReferenceID: "re_2", Key: "stripe:re:re_2"},
		{TeamID: scope.TeamID(), Amount: 0, To: wallet.Test, ReferenceID: "re_2", Key: "stripe:re:re_2"},
		{TeamID: scope.TeamID(), Amount: money.Dollar, To: wallet.Test, ReferenceID: "re_2"},
	} {
		d.At = h.clock.Now()
		if err := h.try(func(ctx context.Context, tx pgx.Tx) error { _, err := h.w.DebitTx(ctx, tx, d); return err }); err == nil {
			t.Errorf("%+v was taken", d)
		}
	}
	h.wantBalance(scope, 9*money.Dollar)
}

// Usage up to the debit is paid before it; a pod never runs on what is owed.
func TestADebitEndsPodsAtItsInstant(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	scope := h.scope()
	h.credit(scope.TeamID(), 10*money.Dollar)
	const rate = 3_333_333 // per hour
	h.start(scope.TeamID(), wallet.PodRuntime, rate)
	h.clock.Advance(100*time.Minute + 7*time.Microsecond)
	used := new(big.Int).Mul(big.NewInt(rate), big.NewInt((100*time.Minute + 7*time.Microsecond).Microseconds()))
	used.Div(used, big.NewInt(time.Hour.Microseconds()))
	left := 10*money.Dollar - money.USD(used.Int64())
	h.debit(scope.TeamID(), "dp_1", 10*money.Dollar)
	h.wantBalance(scope, left-10*money.Dollar)
	at, off := h.exhaust(scope.TeamID())
	if !off || !at.Equal(h.clock.Now()) {
		t.Errorf("the pods are switched off at %s (%t), want %s", at, off, h.clock.Now())
	}
	h.clock.Advance(time.Hour)
	h.wantBalance(scope, left-10*money.Dollar) // nothing ran on debt
	h.sound()
}

// Half of the money gone, pods go on to the instant that the rest lasts to.
func TestADebitBringsTheEndNearer(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	scope := h.scope()
	h.credit(scope.TeamID(), 10*money.Dollar)
	h.start(scope.TeamID(), wallet.PodRuntime, 1_000_000)
	h.debit(scope.TeamID(), "re_1", 5*money.Dollar)
	if at := h.balance(scope).DepletesAt; at == nil || !at.Equal(h.clock.Now().Add(5*time.Hour)) {
		t.Errorf("5 dollars at 1 an hour last to %v", at)
	}
	h.sound()
}
