package meter_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/meter"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/team/teamtest"
	"homeport.dev/homeport/internal/wallet"
)

var noon = time.Date(2027, 3, 14, 12, 0, 0, 0, time.UTC)

// A fleet stands for the pods of all teams: it keeps which were switched off.
type fleet struct {
	mu     sync.Mutex
	off    []off
	locked map[uuid.UUID]bool
	broken map[uuid.UUID]bool
	told   int // how often pods were to tell of their end
	stop   func(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, at time.Time) error
}

type off struct {
	team   uuid.UUID
	at     time.Time
	reason string
}

var errBroken = errors.New("this team's pods cannot be locked")

func (f *fleet) LockTeamTx(_ context.Context, _ pgx.Tx, teamID uuid.UUID) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken[teamID] {
		return errBroken
	}
	f.locked[teamID] = true
	return nil
}

func (f *fleet) TellTeamTx(context.Context, pgx.Tx, uuid.UUID) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told++
	return nil
}

func (f *fleet) SwitchOffTeamTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, at time.Time, reason string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.locked[teamID] {
		return errors.New("switched off without a lock")
	}
	f.off = append(f.off, off{teamID, at, reason})
	if f.stop == nil {
		return nil
	}
	return f.stop(ctx, tx, teamID, at)
}

// run gives a new team money and a pod that burns it.
func (y *yard) run(amount money.USD, rate money.Rate) (team.Scope, uuid.UUID) {
	y.t.Helper()
	scope := teamtest.Admin(y.t, y.pool, team.Pro)
	pod := id.New()
	err := pg.InTx(y.t.Context(), y.pool, func(tx pgx.Tx) error {
		ctx, now := y.t.Context(), y.clock.Now()
		if err := y.w.OpenTx(ctx, tx, scope.TeamID(), now); err != nil {
			return err
		}
		key := id.New().String()
		if _, err := y.w.CreditTx(ctx, tx, wallet.Credit{
			TeamID: scope.TeamID(), Amount: amount, Source: wallet.Test, Key: key, At: now,
		}); err != nil {
			return err
		}
		return y.w.StartTx(ctx, tx, wallet.Start{
			TeamID: scope.TeamID(), ResourceID: pod, Kind: wallet.PodRuntime, Rate: rate, At: now,
		})
	})
	if err != nil {
		y.t.Fatal(err)
	}
	return scope, pod
}

func (y *yard) wantEnd(scope team.Scope, pod uuid.UUID, at time.Time) {
	y.t.Helper()
	until, err := y.w.MeteredUntil(y.t.Context(), y.pool, []uuid.UUID{pod})
	if err != nil {
		y.t.Fatal(err)
	}
	if !until[pod].Equal(at) {
		y.t.Errorf("metered until %v, want %v", until[pod], at)
	}
	b, err := y.w.Balance(y.t.Context(), scope, y.clock.Now())
	if err != nil {
		y.t.Fatal(err)
	}
	if b.Balance != 0 || b.SpendingPerHour != 0 {
		y.t.Errorf("balance %s, spending %s, want nothing of both", b.Balance.Decimal(), b.SpendingPerHour.Decimal())
	}
}

func TestPodsEndWhenTheMoneyDoesInThatOrder(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	late, latePod := y.run(2*money.Dollar, 1_000_000)
	early, earlyPod := y.run(money.Dollar, 1_000_000)
	if err := y.m.FollowSweep(t.Context()); err != nil || len(y.fleet.off) != 0 {
		t.Fatalf("switched off %v (%v) while there was money", y.fleet.off, err)
	}
	y.clock.Advance(40 * 24 * time.Hour)
	if err := y.m.RunDue(t.Context(), y.clock.Now()); err != nil {
		t.Fatal(err)
	}
	want := []off{{early.TeamID(), noon.Add(time.Hour), meter.ReasonBalance}, {late.TeamID(), noon.Add(2 * time.Hour), meter.ReasonBalance}}
	if !slices.Equal(y.fleet.off, want) {
		t.Errorf("switched off %v, want %v", y.fleet.off, want)
	}
	y.wantEnd(early, earlyPod, noon.Add(time.Hour))
	y.wantEnd(late, latePod, noon.Add(2*time.Hour))
	if err := y.m.RunDue(t.Context(), y.clock.Now()); err != nil || len(y.fleet.off) != 2 {
		t.Errorf("a second run switched off %v (%v)", y.fleet.off, err)
	}
}

func TestOneTeamIsSwitchedOffOnceByManyNodes(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.run(money.Dollar, 1_000_000)
	y.clock.Advance(2 * time.Hour)
	var wait sync.WaitGroup
	for range 16 {
		wait.Go(func() {
			if err := y.m.FollowSweep(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if len(y.fleet.off) != 1 {
		t.Errorf("switched off %d times, want once", len(y.fleet.off))
	}
}

func TestATeamThatFailsDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	bad, _ := y.run(money.Dollar, 1_000_000)
	good, goodPod := y.run(2*money.Dollar, 1_000_000)
	y.fleet.broken[bad.TeamID()] = true
	y.clock.Advance(3 * time.Hour)
	if err := y.m.FollowSweep(t.Context()); !errors.Is(err, errBroken) {
		t.Errorf("error %v, want the broken team's", err)
	}
	y.wantEnd(good, goodPod, noon.Add(2*time.Hour))
	delete(y.fleet.broken, bad.TeamID())
	if err := y.m.FollowSweep(t.Context()); err != nil || len(y.fleet.off) != 2 {
		t.Errorf("switched off %v (%v), want both", y.fleet.off, err)
	}
}

func TestAPaymentAfterTheEndKeepsItsFullAmount(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	scope, pod := y.run(money.Dollar, 1_000_000)
	y.clock.Advance(90 * time.Minute) // half an hour late, before any sweep
	err := pg.InTx(t.Context(), y.pool, func(tx pgx.Tx) error {
		_, err := y.w.CreditTx(t.Context(), tx, wallet.Credit{
			TeamID: scope.TeamID(), Amount: 5 * money.Dollar, Source: wallet.Test, Key: "late", At: y.clock.Now(),
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := y.m.FollowSweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []off{{scope.TeamID(), noon.Add(time.Hour), meter.ReasonBalance}}; !slices.Equal(y.fleet.off, want) {
		t.Errorf("switched off %v, want %v", y.fleet.off, want)
	}
	b, err := y.w.Balance(t.Context(), scope, y.clock.Now())
	if err != nil || b.Balance != 5*money.Dollar {
		t.Errorf("balance %s (%v), want all of the payment", b.Balance.Decimal(), err)
	}
	until, err := y.w.MeteredUntil(t.Context(), y.pool, []uuid.UUID{pod})
	if err != nil || !until[pod].Equal(noon.Add(time.Hour)) {
		t.Errorf("metered until %v (%v)", until[pod], err)
	}
}

// 32 payments arrive while 32 nodes look for who ran out, at the very instant
// at which the money is gone: either the pod goes on with all of the money, or
// it ended at that instant at no cost beyond it. Never both, never neither.
func TestTopUpsAgainstTheEndOfTheMoney(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	for _, late := range []time.Duration{-time.Microsecond, 0, time.Microsecond, time.Second} {
		scope, pod := y.run(money.Dollar, 1_000_000)
		end := y.clock.Now().Add(time.Hour)
		y.clock.Advance(time.Hour + late)
		y.fleet.off = nil
		var wait sync.WaitGroup
		start := make(chan struct{})
		for i := range 64 {
			wait.Go(func() {
				<-start
				if i%2 == 0 {
					if err := y.m.FollowSweep(t.Context()); err != nil {
						t.Error(err)
					}
					return
				}
				err := pg.InTx(t.Context(), y.pool, func(tx pgx.Tx) error {
					_, err := y.w.CreditTx(t.Context(), tx, wallet.Credit{
						TeamID: scope.TeamID(), Amount: money.Dollar, Source: wallet.Test, Key: id.New().String(), At: y.clock.Now(),
					})
					return err
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		close(start)
		wait.Wait()
		until, err := y.w.MeteredUntil(t.Context(), y.pool, []uuid.UUID{pod})
		y.must(err)
		if late < 0 {
			// In time: the pod goes on, and pays for the hour.
			if b := y.balance(scope); len(y.fleet.off) != 0 || !until[pod].IsZero() || b.Balance != 32*money.Dollar+1 || b.SpendingPerHour != 1_000_000 {
				t.Errorf("%s: switched off %v, metered until %v, balance %s", late, y.fleet.off, until[pod], b.Balance.Decimal())
			}
			y.stop(pod)
			continue
		}
		want := []off{{scope.TeamID(), end, meter.ReasonBalance}}
		if b := y.balance(scope); !slices.Equal(y.fleet.off, want) || !until[pod].Equal(end) || b.Balance != 32*money.Dollar || b.SpendingPerHour != 0 {
			t.Errorf("%s: switched off %v, metered until %v, balance %s", late, y.fleet.off, until[pod], b.Balance.Decimal())
		}
	}
	if problems, err := y.w.Verify(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("the books do not balance: %v (%v)", problems, err)
	}
}

func TestFortyDaysOfManyTeamsSettleSoon(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	for range 20 {
		y.run(5_000*money.Dollar, 1_234_567)
	}
	y.clock.Advance(40 * 24 * time.Hour)
	if err := y.m.RunDue(t.Context(), y.clock.Now()); err != nil {
		t.Fatal(err)
	}
	var windows int
	if err := y.pool.QueryRow(t.Context(), `select count(*) from transfer where code = 'charge'`).Scan(&windows); err != nil {
		t.Fatal(err)
	}
	if windows != 20*40 {
		t.Errorf("%d windows were posted, want one per pod and day", windows)
	}
	if problems, err := y.w.Verify(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("the books do not balance: %v (%v)", problems, err)
	}
}
