package wallet_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/wallet"
)

// pay adds a payment to a wallet under its name.
func (h *house) pay(teamID uuid.UUID, payment string, amount money.USD, source wallet.Source) {
	h.t.Helper()
	h.do(func(ctx context.Context, tx pgx.Tx) error {
		_, err := h.w.CreditTx(ctx, tx, wallet.Credit{
			TeamID: teamID, Amount: amount, Source: source, ReferenceID: payment, Key: "pi:" + payment,
			Description: "Credit added by card", At: h.clock.Now(),
		})
		return err
	})
}

// close closes a wallet whose payments have these homes.
func (h *house) close(teamID, otherwise uuid.UUID, homes map[string]uuid.UUID) error {
	return h.try(func(ctx context.Context, tx pgx.Tx) error {
		return h.w.CloseTx(ctx, tx, wallet.Closing{
			TeamID: teamID, Name: "Docks", At: h.clock.Now(), Otherwise: otherwise,
			Homes: func(context.Context, pgx.Tx, []string) (map[string]uuid.UUID, error) { return homes, nil },
		})
	})
}

// spend lets a pod run for an hour at a rate.
func (h *house) spend(teamID uuid.UUID, rate money.Rate) {
	h.t.Helper()
	pod := h.start(teamID, wallet.PodRuntime, rate)
	h.clock.Advance(time.Hour)
	h.stop(pod, h.clock.Now())
}

// rows lists the money in and out of a team as its history shows it.
func (h *house) rows(scope team.Scope) []string {
	h.t.Helper()
	var rows []string
	for _, r := range h.history(scope, 100) {
		if r.ResourceType == "" {
			rows = append(rows, fmt.Sprintf("%s %s %s: %s", r.Type, r.Amount.Decimal(), r.ReferenceID, r.Description))
		}
	}
	return rows
}

// What was spent is what was paid first; the rest goes back to who paid it,
// the newest payment first, as if it had been paid in there.
func TestClosingGivesTheNewestPaymentsBack(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	docks, ada, bob := h.proScope(), h.scope(), h.scope()
	h.pay(docks.TeamID(), "pi_ada_1", 10*money.Dollar, wallet.Stripe)
	h.pay(docks.TeamID(), "pi_bob_1", 5*money.Dollar, wallet.Stripe)
	h.pay(docks.TeamID(), "pi_ada_2", 3*money.Dollar, wallet.Test)
	h.spend(docks.TeamID(), 9*perHour)
	homes := map[string]uuid.UUID{"pi_ada_1": ada.TeamID(), "pi_ada_2": ada.TeamID(), "pi_bob_1": bob.TeamID()}
	if err := h.close(docks.TeamID(), uuid.Nil, homes); err != nil {
		t.Fatal(err)
	}
	h.wantBalance(docks, 0)
	h.wantBalance(ada, 4*money.Dollar)
	h.wantBalance(bob, 5*money.Dollar)
	const from = ": Returned from team Docks, which was deleted"
	if got, want := fmt.Sprintf("%q", h.rows(ada)), fmt.Sprintf("%q", []string{"credit 1 pi_ada_1" + from, "credit 3 pi_ada_2" + from}); got != want {
		t.Errorf("ada sees %s, want %s", got, want)
	}
	if got, want := fmt.Sprintf("%q", h.rows(bob)), fmt.Sprintf("%q", []string{"credit 5 pi_bob_1" + from}); got != want {
		t.Errorf("bob sees %s, want %s", got, want)
	}
	if rows := h.rows(docks); len(rows) != 6 || rows[0] != "debit -1 pi_ada_1: Returned to who paid it: the team was deleted" {
		t.Errorf("the team's history: %q", rows)
	}
	h.verify()
}

// A wallet that owes, or whose payment is disputed, stays as it is.
func TestClosingIsRefused(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	home := h.scope()
	owing, disputed, metered := h.proScope(), h.proScope(), h.proScope()
	h.pay(owing.TeamID(), "pi_1", money.Dollar, wallet.Stripe)
	volume := h.start(owing.TeamID(), wallet.VolumeStorage, perHour)
	h.clock.Advance(90 * time.Minute)
	h.stop(volume, h.clock.Now())
	h.pay(disputed.TeamID(), "pi_2", money.Dollar, wallet.Stripe)
	h.pay(metered.TeamID(), "pi_3", money.Dollar, wallet.Stripe)
	h.start(metered.TeamID(), wallet.VolumeStorage, 5)
	hold := wallet.Hold{TeamID: disputed.TeamID(), ReferenceID: "dp_1"}
	h.do(func(ctx context.Context, tx pgx.Tx) error { return h.w.HoldTx(ctx, tx, hold, h.clock.Now()) })
	for _, scope := range []team.Scope{owing, disputed} {
		err := h.close(scope.TeamID(), home.TeamID(), nil)
		if !errors.Is(err, wallet.ErrUnsettled) || err.Error() == "" {
			t.Errorf("%s: %v", scope.TeamID(), err)
		}
	}
	if err := h.close(metered.TeamID(), home.TeamID(), nil); err == nil || errors.Is(err, wallet.ErrUnsettled) {
		t.Errorf("something metered: %v", err)
	}
	h.wantBalance(owing, -money.Dollar/2)
	h.wantBalance(disputed, money.Dollar)
	h.wantBalance(home, 0)
	h.do(func(ctx context.Context, tx pgx.Tx) error { return h.w.LiftTx(ctx, tx, hold) })
	if err := h.close(disputed.TeamID(), home.TeamID(), nil); err != nil {
		t.Errorf("after the dispute: %v", err)
	}
	h.wantBalance(home, money.Dollar)
	h.verify()
}

// Nobody's money stays behind: what no payer is known of goes to the deleter,
// promotional credit to the house, and a receiving wallet pays its debt first.
func TestClosingLeavesNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	docks, home := h.proScope(), h.scope()
	h.pay(docks.TeamID(), "gift", 2*money.Dollar, wallet.Promo)
	h.pay(docks.TeamID(), "pi_unknown", 3*money.Dollar, wallet.Stripe)
	h.pay(home.TeamID(), "pi_home", money.Cent, wallet.Stripe)
	volume := h.start(home.TeamID(), wallet.VolumeStorage, perHour)
	h.clock.Advance(time.Hour)
	h.stop(volume, h.clock.Now())
	h.wantBalance(home, money.Cent-money.Dollar)
	if err := h.close(docks.TeamID(), home.TeamID(), nil); err != nil {
		t.Fatal(err)
	}
	h.wantBalance(docks, 0)
	h.wantBalance(home, 2*money.Dollar+money.Cent)
	empty := h.proScope()
	if err := h.close(empty.TeamID(), home.TeamID(), nil); err != nil {
		t.Errorf("an empty wallet: %v", err)
	}
	h.verify()
}

// A checkout that was open when the team was deleted and is paid later goes
// the same way, once.
func TestMoneyThatComesAfterTheEnd(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	docks, ada := h.proScope(), h.scope()
	h.pay(docks.TeamID(), "pi_1", 5*money.Dollar, wallet.Stripe)
	late := func() []uuid.UUID {
		teams, err := h.w.ClosedWithMoney(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return teams
	}
	if teams := late(); len(teams) != 0 {
		t.Errorf("an open wallet is listed: %v", teams)
	}
	homes := map[string]uuid.UUID{"pi_1": ada.TeamID(), "pi_2": ada.TeamID()}
	for i, want := range []money.USD{5 * money.Dollar, 5 * money.Dollar, 12 * money.Dollar, 12 * money.Dollar} {
		if i == 2 {
			h.pay(docks.TeamID(), "pi_2", 7*money.Dollar, wallet.Stripe)
			if teams := late(); len(teams) != 1 || teams[0] != docks.TeamID() {
				t.Errorf("late money is listed for %v", teams)
			}
		}
		if err := h.close(docks.TeamID(), uuid.Nil, homes); err != nil {
			t.Fatal(err)
		}
		h.wantBalance(docks, 0)
		h.wantBalance(ada, want)
	}
	if teams := late(); len(teams) != 0 {
		t.Errorf("still listed: %v", teams)
	}
	h.verify()
}

// Teams that give back to the same wallets at once wait for each other in one
// order, and not a micro-dollar is lost on the way.
func TestClosingManyAtOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	people := []team.Scope{h.scope(), h.scope(), h.scope()}
	var wg sync.WaitGroup
	for i := range 24 {
		docks := h.proScope()
		homes := map[string]uuid.UUID{}
		for n := range people {
			payment := id.New().String()
			homes[payment] = people[(i+n)%len(people)].TeamID()
			h.pay(docks.TeamID(), payment, money.Dollar, wallet.Test)
		}
		for range 2 { // the same one twice, too
			wg.Go(func() {
				if err := h.close(docks.TeamID(), uuid.Nil, homes); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	for _, p := range people {
		h.wantBalance(p, 24*money.Dollar)
	}
	h.verify()
}
