package wallet_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/pg/pgtest"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/wallet"
)

// noon is an instant in the middle of a month, far from midnight.
var noon = time.Date(2027, 3, 14, 12, 0, 0, 0, time.UTC)

// A house is a wallet service over a real database.
type house struct {
	t     testing.TB
	pool  *pgxpool.Pool
	w     *wallet.Service
	teams *team.Service
	clock *clock.Manual
}

func newHouse(t testing.TB) *house {
	t.Helper()
	return houseOn(t, pgtest.New(t), clock.Fixed(noon), slog.New(slog.DiscardHandler))
}

func houseOn(t testing.TB, pool *pgxpool.Pool, now *clock.Manual, logger *slog.Logger) *house {
	h := &house{t: t, pool: pool, clock: now}
	h.w = wallet.New(wallet.Deps{Pool: h.pool, Clock: h.clock.Clock, Logger: logger})
	h.teams = team.New(team.Deps{Pool: h.pool, Clock: h.clock.Clock, Hooks: team.Hooks{OpenWallet: h.w.OpenTx}})
	return h
}

// scope makes a person with a personal team and a wallet.
func (h *house) scope() team.Scope {
	h.t.Helper()
	p := team.Person{ID: id.New(), Email: "someone@example.com"}
	info, err := h.teams.UserInfo(h.t.Context(), p)
	if err != nil {
		h.t.Fatal(err)
	}
	scope, err := h.teams.Authorize(h.t.Context(), p, info.Personal.ID, team.Read)
	if err != nil {
		h.t.Fatal(err)
	}
	return scope
}

// wallet opens a wallet that has no team.
func (h *house) wallet() uuid.UUID {
	h.t.Helper()
	teamID := id.New()
	h.do(func(ctx context.Context, tx pgx.Tx) error { return h.w.OpenTx(ctx, tx, teamID, h.clock.Now()) })
	return teamID
}

func (h *house) do(fn func(ctx context.Context, tx pgx.Tx) error) {
	h.t.Helper()
	if err := h.try(fn); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) try(fn func(ctx context.Context, tx pgx.Tx) error) error {
	ctx := h.t.Context()
	return pg.InTx(ctx, h.pool, func(tx pgx.Tx) error { return fn(ctx, tx) })
}

func (h *house) credit(teamID uuid.UUID, amount money.USD) {
	h.t.Helper()
	key := id.New().String()
	h.do(func(ctx context.Context, tx pgx.Tx) error {
		posted, err := h.w.CreditTx(ctx, tx, wallet.Credit{
			TeamID: teamID, Amount: amount, Source: wallet.Test, ReferenceID: "pi_" + key, Key: key,
			Description: "Test", At: h.clock.Now(),
		})
		if err == nil && !posted {
			h.t.Error("a new credit was not posted")
		}
		return err
	})
}

func (h *house) start(teamID uuid.UUID, kind wallet.Kind, rate money.Rate) uuid.UUID {
	h.t.Helper()
	resource := id.New()
	h.do(func(ctx context.Context, tx pgx.Tx) error {
		return h.w.StartTx(ctx, tx, wallet.Start{
			TeamID: teamID, ResourceID: resource, Kind: kind, Rate: rate, At: h.clock.Now(), Description: "2x H100 80GB",
		})
	})
	return resource
}

func (h *house) stop(resource uuid.UUID, at time.Time) {
	h.t.Helper()
	h.do(func(ctx context.Context, tx pgx.Tx) error { return h.w.StopTx(ctx, tx, resource, at) })
}

func (h *house) rerate(resource uuid.UUID, rate money.Rate) {
	h.t.Helper()
	h.do(func(ctx context.Context, tx pgx.Tx) error {
		return h.w.RerateTx(ctx, tx, resource, rate, h.clock.Now())
	})
}

func (h *house) settle() {
	h.t.Helper()
	if _, err := h.w.SettleDue(h.t.Context(), h.clock.Now()); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) exhaust(teamID uuid.UUID) (at time.Time, exhausted bool) {
	h.t.Helper()
	h.do(func(ctx context.Context, tx pgx.Tx) (err error) {
		var e wallet.Exhaustion
		e, exhausted, err = h.w.ExhaustTx(ctx, tx, teamID, h.clock.Now())
		at = e.At
		return err
	})
	return at, exhausted
}

func (h *house) balance(scope team.Scope) wallet.Balance {
	h.t.Helper()
	b, err := h.w.Balance(h.t.Context(), scope, h.clock.Now())
	if err != nil {
		h.t.Fatal(err)
	}
	return b
}

// history reads every page.
func (h *house) history(scope team.Scope, limit int) []wallet.Transaction {
	h.t.Helper()
	var all []wallet.Transaction
	for next := ""; ; {
		rows, more, err := h.w.Transactions(h.t.Context(), scope, h.clock.Now(), limit, next)
		if err != nil {
			h.t.Fatal(err)
		}
		if all = append(all, rows...); more == "" {
			return all
		}
		next = more
	}
}

func (h *house) wantBalance(scope team.Scope, want money.USD) {
	h.t.Helper()
	if got := h.balance(scope).Balance; got != want {
		h.t.Errorf("balance %s, want %s", got.Decimal(), want.Decimal())
	}
	var sum money.USD
	for _, r := range h.history(scope, 1000) {
		sum += r.Amount
	}
	if sum != want {
		h.t.Errorf("rows sum up to %s, want %s", sum.Decimal(), want.Decimal())
	}
}

func TestPodCostsItsRatePerSecond(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	scope := h.scope()
	h.credit(scope.TeamID(), 10*money.Dollar)
	pod := h.start(scope.TeamID(), wallet.PodRuntime, 3_600_000)
	h.clock.Advance(90 * time.Second)
	h.wantBalance(scope, 10*money.Dollar-90_000)
	h.stop(pod, h.clock.Now())
	h.clock.Advance(time.Hour)
	h.wantBalance(scope, 10*money.Dollar-90_000)
	h.clock.Advance(12 * time.Hour)
	h.settle()
	h.wantBalance(scope, 10*money.Dollar-90_000)
}
