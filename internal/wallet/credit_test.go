package wallet_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/wallet"
)

// byBook is the wallet as the book leaves it after a credit, which is undone.
func (h *house) byBook(c wallet.Credit) (row string) {
	h.t.Helper()
	undone := errors.New("undone")
	err := h.try(func(ctx context.Context, tx pgx.Tx) error {
		if err := h.w.CreditByBookTx(ctx, tx, c); err != nil {
			return err
		}
		row = h.row(ctx, tx, c.TeamID)
		return undone
	})
	if !errors.Is(err, undone) {
		h.t.Fatal(err)
	}
	return row
}

// row is all that the database holds of a wallet.
func (h *house) row(ctx context.Context, q pg.Querier, teamID uuid.UUID) (row string) {
	h.t.Helper()
	if err := q.QueryRow(ctx, `select w::text from wallet w where team_id = $1`, teamID).Scan(&row); err != nil {
		h.t.Fatal(err)
	}
	return row
}

// act does what a wallet waits for by now.
func (h *house) act(teamID uuid.UUID) {
	h.t.Helper()
	for {
		due, found, err := h.w.NextDue(h.t.Context(), teamID, h.clock.Now())
		if err != nil {
			h.t.Fatal(err)
		}
		if !found {
			return
		}
		h.do(func(ctx context.Context, tx pgx.Tx) (err error) {
			switch due.What {
			case wallet.WarnDue:
				_, _, err = h.w.WarnTx(ctx, tx, teamID, h.clock.Now())
			case wallet.ExhaustDue:
				_, _, err = h.w.ExhaustTx(ctx, tx, teamID, h.clock.Now())
			case wallet.SpendDue:
				_, err = h.w.SpendTx(ctx, tx, teamID, h.clock.Now())
			case wallet.ArrearsDue:
				_, err = h.w.ArrearsTx(ctx, tx, teamID, h.clock.Now())
			}
			return err
		})
	}
}

// Whatever a wallet has behind it, the short way of a credit leaves the wallet
// as the long one does.
func TestACreditLeavesTheWalletAsTheBookDoes(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	runOut := func(teamID uuid.UUID, kind wallet.Kind) {
		h.credit(teamID, money.Dollar)
		h.start(teamID, kind, perHour)
		h.act(teamID)
		h.clock.Advance(2 * time.Hour)
		h.act(teamID)
	}
	for name, live := range map[string]func(teamID uuid.UUID){
		"new":        func(uuid.UUID) {},
		"with money": func(teamID uuid.UUID) { h.credit(teamID, money.Dollar) },
		"a pod ran": func(teamID uuid.UUID) {
			h.credit(teamID, money.Dollar)
			pod := h.start(teamID, wallet.PodRuntime, perHour)
			h.clock.Advance(time.Minute)
			h.stop(pod, h.clock.Now())
		},
		"that is settled": func(teamID uuid.UUID) {
			h.credit(teamID, money.Dollar)
			h.stop(h.start(teamID, wallet.PodRuntime, perHour), h.clock.Now().Add(time.Minute))
			h.clock.Advance(24 * time.Hour)
			h.settle()
			h.act(teamID)
		},
		"a pod runs":      func(teamID uuid.UUID) { h.credit(teamID, money.Dollar); h.start(teamID, wallet.PodRuntime, perHour) },
		"a pod is free":   func(teamID uuid.UUID) { h.credit(teamID, money.Dollar); h.start(teamID, wallet.PodRuntime, 0) },
		"a pod ran out":   func(teamID uuid.UUID) { runOut(teamID, wallet.PodRuntime) },
		"storage ran out": func(teamID uuid.UUID) { runOut(teamID, wallet.VolumeStorage) },
		"storage is owed": func(teamID uuid.UUID) { runOut(teamID, wallet.VolumeStorage); h.clock.Advance(6 * 24 * time.Hour) },
		"storage is frozen": func(teamID uuid.UUID) {
			runOut(teamID, wallet.VolumeStorage)
			h.clock.Advance(8 * 24 * time.Hour)
			h.act(teamID)
		},
		"storage is gone": func(teamID uuid.UUID) {
			runOut(teamID, wallet.VolumeStorage)
			h.clock.Advance(40 * 24 * time.Hour)
			h.act(teamID)
		},
		"money is owed": func(teamID uuid.UUID) {
			h.do(func(ctx context.Context, tx pgx.Tx) error {
				_, err := h.w.DebitTx(ctx, tx, wallet.Debit{TeamID: teamID, Amount: 30 * money.Cent, To: wallet.Test, Key: id.New().String(), At: h.clock.Now()})
				return err
			})
		},
	} {
		for _, amount := range []money.USD{money.Cent, 1000 * money.Dollar} {
			teamID := h.scope().TeamID()
			live(teamID)
			c := wallet.Credit{TeamID: teamID, Amount: amount, Source: wallet.Test, Key: id.New().String(), At: h.clock.Now()}
			want := h.byBook(c)
			h.do(func(ctx context.Context, tx pgx.Tx) error { _, err := h.w.CreditTx(ctx, tx, c); return err })
			if got := h.row(t.Context(), h.pool, teamID); got != want {
				t.Errorf("%s: after a credit of %s the wallet is\n%s, by the book\n%s", name, amount.Decimal(), got, want)
			}
		}
	}
	h.verify()
}

// Two events of one payment, on two nodes, at one instant: the second finds the
// wallet locked, and what the first has posted when it gets it.
func TestTheSameCreditTwiceAtOnceCountsOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	scope := h.scope()
	c := wallet.Credit{TeamID: scope.TeamID(), Amount: money.Dollar, Source: wallet.Test, Key: "pi_twice", ReferenceID: "pi_twice", At: h.clock.Now()}
	for round := range 20 {
		c.Key = fmt.Sprintf("pi_twice_%d", round)
		posted := make([]bool, 8)
		var wait sync.WaitGroup
		for i := range posted {
			wait.Go(func() {
				err := h.try(func(ctx context.Context, tx pgx.Tx) (err error) {
					posted[i], err = h.w.CreditTx(ctx, tx, c)
					return err
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		if n := len(slices.DeleteFunc(posted, func(did bool) bool { return !did })); n != 1 {
			t.Fatalf("%d of 8 say that they posted credit %d", n, round)
		}
	}
	if b := h.balance(scope); b.Balance != 20*money.Dollar {
		t.Errorf("the balance is %v after 20 credits of 1 USD", b.Balance)
	}
}
