package wallet_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/team/teamtest"
	"homeport.dev/homeport/internal/wallet"
)

const perHour = money.Rate(money.Dollar)

// proScope makes a Pro team with a wallet.
func (h *house) proScope() team.Scope {
	h.t.Helper()
	scope := teamtest.Admin(h.t, h.pool, team.Pro)
	h.do(func(ctx context.Context, tx pgx.Tx) error { return h.w.OpenTx(ctx, tx, scope.TeamID(), h.clock.Now()) })
	return scope
}

func (h *house) verify() {
	h.t.Helper()
	if problems, err := h.w.Verify(h.t.Context()); err != nil || len(problems) > 0 {
		h.t.Errorf("the books: %v (%v)", problems, err)
	}
}

func TestTransfersCannotBeChanged(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.credit(h.wallet(), money.Dollar)
	for _, sql := range []string{`update transfer set amount_usd_micro = 5`, `delete from transfer`, `truncate transfer`} {
		if _, err := h.pool.Exec(t.Context(), sql); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: %v", sql, err)
		}
	}
	h.verify()
}

func TestOneKeyPostsOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	scope := h.scope()
	other := h.wallet()
	c := wallet.Credit{TeamID: scope.TeamID(), Amount: money.Dollar, Source: wallet.Stripe, Key: "stripe:pi:1", ReferenceID: "pi_1", At: h.clock.Now()}
	var mu sync.Mutex
	posts := 0
	var wait sync.WaitGroup
	for range 64 {
		wait.Go(func() {
			err := h.try(func(ctx context.Context, tx pgx.Tx) error {
				posted, err := h.w.CreditTx(ctx, tx, c)
				if posted {
					mu.Lock()
					posts++
					mu.Unlock()
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if posts != 1 {
		t.Errorf("posted %d times", posts)
	}
	h.wantBalance(scope, money.Dollar)
	for name, change := range map[string]func(*wallet.Credit){
		"amount":    func(c *wallet.Credit) { c.Amount++ },
		"team":      func(c *wallet.Credit) { c.TeamID = other },
		"reference": func(c *wallet.Credit) { c.ReferenceID = "pi_2" },
	} {
		bad := c
		change(&bad)
		if err := h.try(func(ctx context.Context, tx pgx.Tx) error { _, err := h.w.CreditTx(ctx, tx, bad); return err }); err == nil {
			t.Errorf("the same key with another %s was taken", name)
		}
	}
	h.wantBalance(scope, money.Dollar)
}

// A statement that waits for the wallet saw its segments before the wait.
func TestACreditThatWaitedKnowsWhatBeganMeanwhile(t *testing.T) {
	t.Parallel()
	t.Run("at rest", func(t *testing.T) { creditThatWaited(t, 0, 2*time.Hour) })
	t.Run("running", func(t *testing.T) { creditThatWaited(t, perHour, time.Hour) })
}

// creditThatWaited has storage run at a rate before the pod begins; the money
// of both credits lasts as long as lasts.
func creditThatWaited(t *testing.T, storage money.Rate, lasts time.Duration) {
	t.Parallel()
	h := newHouse(t)
	teamID := h.wallet()
	h.credit(teamID, money.Dollar)
	if storage > 0 {
		h.start(teamID, wallet.VolumeStorage, storage)
	}
	first, err := h.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Rollback(t.Context()) }()
	start := wallet.Start{TeamID: teamID, ResourceID: id.New(), Kind: wallet.PodRuntime, Rate: perHour, At: h.clock.Now()}
	if err := h.w.StartTx(t.Context(), first, start); err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	wait.Go(func() { h.credit(teamID, money.Dollar) })
	for waiting := 0; waiting == 0; {
		sql := `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
		if err := h.pool.QueryRow(t.Context(), sql).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	wait.Wait()
	began := h.clock.Now()
	h.clock.Advance(3 * time.Hour)
	if at, exhausted := h.exhaust(teamID); !exhausted || !at.Equal(began.Add(lasts)) {
		t.Errorf("exhausted %v at %s, want %s after %s", exhausted, at, lasts, began)
	}
	h.verify()
}

func TestRacesKeepTheBooks(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	scope := h.scope()
	h.credit(scope.TeamID(), 1000*money.Dollar)
	pods := make([]uuid.UUID, 16)
	for i := range pods {
		pods[i] = h.start(scope.TeamID(), wallet.PodRuntime, perHour)
	}
	h.clock.Advance(13 * time.Hour) // past midnight
	var wait sync.WaitGroup
	for i := range 64 {
		wait.Go(func() {
			pod := pods[i%len(pods)]
			err := h.try(func(ctx context.Context, tx pgx.Tx) error {
				switch i / len(pods) {
				case 0:
					return h.w.RerateTx(ctx, tx, pod, perHour*2, h.clock.Now().Add(-2*time.Hour))
				case 1:
					return h.w.StopTx(ctx, tx, pod, h.clock.Now())
				}
				return nil
			})
			if err != nil && !errors.Is(err, wallet.ErrNotMetered) {
				t.Error(err)
			}
			if i/len(pods) > 1 {
				if _, err := h.w.SettleDue(t.Context(), h.clock.Now()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	for _, pod := range pods {
		h.stop(pod, h.clock.Now())
	}
	h.clock.Advance(24 * time.Hour)
	h.settle()
	h.verify()
	b := h.balance(scope)
	if least, most := 1000*money.Dollar-16*15*money.Dollar, 1000*money.Dollar-16*13*money.Dollar; b.Balance < least || b.Balance > most {
		t.Errorf("balance %s, want between %s and %s", b.Balance, least, most)
	}
	h.wantBalance(scope, b.Balance)
}

// Who moves the clock reads the books next: what another pass holds at that
// moment is waited for.
func TestSettleAllWaitsForTheWalletsOfOthers(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	scope := h.scope()
	h.credit(scope.TeamID(), 100*money.Dollar)
	h.start(scope.TeamID(), wallet.PodRuntime, perHour)
	h.clock.Advance(36 * time.Hour)
	other, err := h.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Exec(t.Context(), `select from wallet where team_id = $1 for update`, scope.TeamID()); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- h.w.SettleAll(t.Context(), h.clock.Now()) }()
	select {
	case err := <-done:
		t.Fatalf("returned while another held a wallet that is due (%v)", err)
	case <-time.After(200 * time.Millisecond):
	}
	if err := other.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	var due bool
	err = h.pool.QueryRow(t.Context(), `select due_us <= $2 from wallet where team_id = $1`, scope.TeamID(), h.clock.Now().UnixMicro()).Scan(&due)
	if err != nil || due {
		t.Errorf("a day is still due (%v)", err)
	}
}

func TestDayRows(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	scope := h.scope()
	h.credit(scope.TeamID(), 100*money.Dollar)
	h.clock.Advance(time.Hour)
	started := h.clock.Now()
	pod := h.start(scope.TeamID(), wallet.PodRuntime, perHour)
	h.clock.Advance(time.Millisecond)
	rows := h.history(scope, 1000)
	if len(rows) != 2 || rows[0].Amount != 0 || rows[0].Type != "charge" || rows[0].ResourceID != pod || !rows[0].CreatedAt.Equal(started) {
		t.Fatalf("after a millisecond: %+v", rows)
	}
	first := rows[0].ID
	if want := id.Derive(pod, "pod-runtime", "2027-03-14"); first != want {
		t.Errorf("the row's id is %s, want %s", first, want)
	}
	h.clock.Advance(2*time.Hour - time.Millisecond)
	if rows = h.history(scope, 1000); len(rows) != 2 || rows[0].ID != first || rows[0].Amount != -2*money.Dollar {
		t.Errorf("after two hours: %+v", rows)
	}
	if want := "Pod runtime: 2x H100 80GB, 2 h"; rows[0].Description != want || rows[0].ReferenceID != first.String() {
		t.Errorf("described as %q, reference %s", rows[0].Description, rows[0].ReferenceID)
	}
	h.rerate(pod, 2*perHour)
	h.do(func(ctx context.Context, tx pgx.Tx) error {
		return h.w.SettleTx(ctx, tx, scope.TeamID(), h.clock.Now())
	})
	h.clock.Advance(12 * time.Hour) // 15:00 to 03:00
	before := h.history(scope, 1000)
	h.settle()
	after := h.history(scope, 1000)
	if !slices.Equal(before, after) {
		t.Errorf("settling changed the rows from %+v to %+v", before, after)
	}
	midnight := started.Truncate(24 * time.Hour).Add(24 * time.Hour)
	if len(after) != 3 || !after[0].CreatedAt.Equal(midnight) || after[0].Amount != -6*money.Dollar || after[1].ID != first || after[1].Amount != -20*money.Dollar {
		t.Errorf("on the next day: %+v", after)
	}
	h.wantBalance(scope, 74*money.Dollar)
	h.verify()
}

func TestADayThatCostNothingKeepsItsRow(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	scope := h.scope()
	h.credit(scope.TeamID(), money.Dollar)
	h.clock.Advance(time.Second)
	pod := h.start(scope.TeamID(), wallet.PodRuntime, perHour)
	free := h.start(scope.TeamID(), wallet.VolumeStorage, 0)
	h.clock.Advance(time.Microsecond)
	h.stop(pod, h.clock.Now())
	h.clock.Advance(36 * time.Hour)
	h.settle()
	rows := h.history(scope, 1000)
	if len(rows) != 2 || rows[0].ResourceID != pod || rows[0].Amount != 0 {
		t.Errorf("rows %+v, want one of amount 0 for the pod, and the credit", rows)
	}
	if slices.ContainsFunc(rows, func(r wallet.Transaction) bool { return r.ResourceID == free }) {
		t.Error("an empty volume has a row")
	}
}

func TestPagesReachEveryRowOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	scope := h.scope()
	for range 12 {
		h.credit(scope.TeamID(), 100*money.Dollar)
	}
	for range 3 {
		h.start(scope.TeamID(), wallet.PodRuntime, perHour)
		h.start(scope.TeamID(), wallet.VolumeStorage, perHour/100)
	}
	h.clock.Advance(5 * 24 * time.Hour)
	h.settle()
	h.clock.Advance(time.Hour)
	all := h.history(scope, 1000)
	if len(all) != 12+6*6 {
		t.Fatalf("%d rows, want 48", len(all))
	}
	if !slices.IsSortedFunc(all, func(a, b wallet.Transaction) int { return b.CreatedAt.Compare(a.CreatedAt) }) {
		t.Error("the rows are not the newest first")
	}
	for _, limit := range []int{1, 2, 3, 7, 10, 47, 48} {
		seen := map[uuid.UUID]int{}
		var sum money.USD
		for _, r := range h.history(scope, limit) {
			seen[r.ID]++
			sum += r.Amount
		}
		if len(seen) != len(all) || sum != h.balance(scope).Balance {
			t.Errorf("pages of %d: %d different rows, sum %s", limit, len(seen), sum)
		}
	}
	page, next, err := h.w.Transactions(t.Context(), scope, h.clock.Now(), 10, "")
	if err != nil || len(page) != 10 || next == "" {
		t.Fatalf("a page of %d rows, next %q (%v)", len(page), next, err)
	}
	count := map[string]int{}
	for _, r := range page {
		count[r.Type+string(r.ResourceType)]++
	}
	if count["credit"] != 3 || count["chargepod-runtime"] != 4 || count["chargevolume-storage"] != 3 {
		t.Errorf("a page of ten has %v", count)
	}
	if _, _, err := h.w.Transactions(t.Context(), scope, h.clock.Now(), 10, "no cursor"); !errors.Is(err, wallet.ErrCursor) {
		t.Errorf("a wrong cursor: %v", err)
	}
}

func TestStorageGoesOnBelowZeroAndIsPaidFirst(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	scope := h.scope()
	h.credit(scope.TeamID(), money.Dollar)
	pod := h.start(scope.TeamID(), wallet.PodRuntime, perHour)
	h.start(scope.TeamID(), wallet.VolumeStorage, perHour)
	h.clock.Advance(30*time.Minute + time.Hour)
	h.wantBalance(scope, -money.Dollar) // before any sweep: the pod stopped at 12:30
	if at, exhausted := h.exhaust(scope.TeamID()); !exhausted || !at.Equal(noon.Add(30*time.Minute)) {
		t.Errorf("exhausted %v at %v", exhausted, at)
	}
	h.wantBalance(scope, -money.Dollar)
	if b := h.balance(scope); b.SpendingPerHour != perHour || b.HoursRemaining == nil || *b.HoursRemaining != 0 {
		t.Errorf("%+v", b)
	}
	h.clock.Advance(24 * time.Hour)
	h.settle()
	h.wantBalance(scope, -25*money.Dollar)
	h.credit(scope.TeamID(), 5*money.Dollar)
	h.wantBalance(scope, -20*money.Dollar)
	h.credit(scope.TeamID(), 30*money.Dollar)
	h.wantBalance(scope, 10*money.Dollar)
	if b := h.balance(scope); b.DepletesAt == nil || !b.DepletesAt.Equal(h.clock.Now().Add(10*time.Hour)) || *b.HoursRemaining != 10 {
		t.Errorf("%+v", b)
	}
	until, err := h.w.MeteredUntil(t.Context(), h.pool, []uuid.UUID{pod})
	if err != nil || !until[pod].Equal(noon.Add(30*time.Minute)) {
		t.Errorf("metered until %v (%v)", until[pod], err)
	}
	h.verify()
}

func TestWhatTheLastTickCostsTooMuchIsTheHouses(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	scope := h.scope()
	h.credit(scope.TeamID(), 5) // three pods that tick together: the second tick costs one too much
	for range 3 {
		h.start(scope.TeamID(), wallet.PodRuntime, perHour)
	}
	h.clock.Advance(time.Hour)
	h.wantBalance(scope, 0)
	if at, exhausted := h.exhaust(scope.TeamID()); !exhausted || !at.Equal(noon.Add(7200*time.Microsecond)) {
		t.Errorf("exhausted %v at %v", exhausted, at)
	}
	h.wantBalance(scope, 0)
	h.verify()
	var writtenOff int64
	err := h.pool.QueryRow(t.Context(), `select sum(amount_usd_micro)::bigint from transfer where code = 'writeoff'`).Scan(&writtenOff)
	if err != nil || writtenOff != 1 {
		t.Errorf("wrote off %d (%v), want 1", writtenOff, err)
	}
}

func TestStartsMayComeOutOfOrder(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	scope := h.scope()
	h.credit(scope.TeamID(), 100*money.Dollar)
	h.clock.Advance(9 * 24 * time.Hour)
	for _, early := range []time.Duration{0, 5 * time.Millisecond, 2 * time.Millisecond} {
		start := wallet.Start{
			TeamID: scope.TeamID(), ResourceID: id.New(), Kind: wallet.PodRuntime, Rate: perHour, At: h.clock.Now().Add(-early),
		}
		h.do(func(ctx context.Context, tx pgx.Tx) error { return h.w.StartTx(ctx, tx, start) })
	}
	h.clock.Advance(time.Hour)
	h.wantBalance(scope, 97*money.Dollar-1) // 7 ms at a dollar an hour
	h.clock.Advance(24 * time.Hour)
	h.settle()
	h.wantBalance(scope, 25*money.Dollar-1)
	h.verify()
}

func TestManyRatesOfADayStayCheapToRead(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	scope := h.scope()
	h.credit(scope.TeamID(), 100*money.Dollar)
	volume := h.start(scope.TeamID(), wallet.VolumeStorage, perHour)
	for i := range 450 {
		h.clock.Advance(time.Second)
		h.rerate(volume, perHour+money.Rate(i%2)+1)
	}
	var unsettled int
	err := h.pool.QueryRow(t.Context(), `select count(*) from segment s join wallet w using (team_id)
		where coalesce(s.stopped_us, 9223372036854775807) > w.settled_us`).Scan(&unsettled)
	if err != nil || unsettled > 201 {
		t.Errorf("%d segments are not settled (%v)", unsettled, err)
	}
	if rows := h.history(scope, 1000); len(rows) != 2 {
		t.Errorf("%d rows, want the credit and the day", len(rows))
	}
	h.wantBalance(scope, h.balance(scope).Balance)
	h.clock.Advance(24 * time.Hour)
	h.settle()
	h.verify()
}

func TestChargesBeyondTheEndAreRefunded(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	scope := h.scope()
	h.credit(scope.TeamID(), 100*money.Dollar)
	pod := h.start(scope.TeamID(), wallet.PodRuntime, perHour)
	h.clock.Advance(24 * time.Hour)
	h.settle() // 12 hours are posted
	lost := noon.Add(5 * time.Hour)
	for range 2 {
		h.stop(pod, lost)
		h.wantBalance(scope, 95*money.Dollar)
	}
	refunds := 0
	for _, r := range h.history(scope, 1000) {
		if r.Type == "refund" {
			refunds++
			if r.Amount != 7*money.Dollar || r.ResourceType != wallet.PodRuntime || r.ResourceID != pod || r.ReferenceID == "" {
				t.Errorf("refund %+v", r)
			}
			if want := "Refund: Pod runtime: 2x H100 80GB, not used after 14 Mar 17:00:00 UTC"; r.Description != want {
				t.Errorf("told as %q, want %q", r.Description, want)
			}
		}
	}
	if refunds != 1 {
		t.Errorf("%d refunds, want 1", refunds)
	}
	if b := h.balance(scope); b.MonthSpent != 5*money.Dollar {
		t.Errorf("spent %s this month, want $5", b.MonthSpent)
	}
	h.verify()
}
