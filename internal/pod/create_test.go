package pod_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/offer"
	"homeport.dev/homeport/internal/pod"
	"homeport.dev/homeport/internal/sshkey"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/team/teamtest"
	"homeport.dev/homeport/internal/volume"
	"homeport.dev/homeport/internal/wallet"
)

// exec runs a statement by which a test changes the world.
func (h *harbour) exec(sql string, args ...any) {
	h.t.Helper()
	_, err := h.pool.Exec(h.t.Context(), sql, args...)
	h.must(err)
}

// tables is a digest of the rows of every table.
func (h *harbour) tables() map[string]string {
	h.t.Helper()
	rows, err := h.pool.Query(h.t.Context(), `select tablename::text from pg_tables where schemaname = 'public'`)
	h.must(err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	h.must(err)
	out := map[string]string{}
	for _, name := range names {
		var digest string
		h.must(h.pool.QueryRow(h.t.Context(), fmt.Sprintf(
			`select count(*) || coalesce(md5(string_agg(r::text, '|' order by r::text)), '') from %s r`, pgx.Identifier{name}.Sanitize(),
		)).Scan(&digest))
		out[name] = digest
	}
	return out
}

// A wish breaks every rule at first. Each step mends one thing and finds the
// next refusal of server rule 7, in its order; none leaves a trace.
func TestChecksComeInTheirOrder(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	admin := h.team(team.Pro, 10*money.Dollar)
	scope := teamtest.Join(t, h.pool, admin.TeamID(), team.Member)
	right := h.ask(scope)
	_, err := h.Create(t.Context(), scope, right)
	h.must(err) // from now on the volume is in use
	stranger := h.team(team.Pro, 10*money.Dollar)
	foreign := h.ask(stranger)
	hold := wallet.Hold{TeamID: scope.TeamID(), ReferenceID: "case"}
	h.tx(func(tx pgx.Tx) error { return h.wallet.HoldTx(t.Context(), tx, hold, h.clock.Now()) })
	var membership uuid.UUID
	h.must(h.pool.QueryRow(t.Context(), `delete from membership where user_id = $1 returning id`, scope.UserID()).Scan(&membership))
	h.exec(`update volume set size_bytes = 500000000000 where id = $1`, right.VolumeID)
	h.Limits.ProGPUs, h.Limits.FreeSetups, h.Limits.MinRunway = 1, 0, 100*time.Hour
	ask := foreign
	ask.KeyID, ask.Max = foreign.KeyID, 1_000_000
	ask.Offer.CloudID, ask.Currency = "no such", "EUR"

	for _, step := range []struct {
		name   string
		want   *fault.Error
		detail string
		mend   func()
	}{
		{"the team is not theirs", team.ErrNotFound, "", func() {
			h.exec(`insert into membership (id, team_id, user_id, role, created_at) values ($1, $2, $3, 'viewer', $4)`,
				membership, scope.TeamID(), scope.UserID(), h.clock.Now())
		}},
		{"a viewer", team.ErrForbidden, "", func() { h.exec(`update membership set role = 'member' where id = $1`, membership) }},
		{"another team's volume", volume.ErrNotFound, "", func() { ask.VolumeID = id.New() }},
		{"no volume", volume.ErrNotFound, "", func() { ask.VolumeID = right.VolumeID }},
		{"another team's key", sshkey.ErrNotFound, "", func() { ask.KeyID = right.KeyID }},
		{"in euro", offer.ErrUnknown, "Please select a valid GPU configuration", func() { ask.Currency = "USD" }},
		{"no such offer", offer.ErrUnknown, "Please select a valid GPU configuration", func() { ask.Offer = right.Offer }},
		{"a disk too small", offer.ErrDisk, "This configuration has too little disk for the volume (535 GB needed).", func() {
			h.exec(`update volume set size_bytes = 0 where id = $1`, right.VolumeID)
		}},
		{"a price lowered on the way", offer.ErrPrice, "Price changed from $1.00 to $2.184 per hour.", func() { ask.Max = 99_000_000 }},
		{"too many GPUs", pod.ErrGPULimit, "Your plan allows 1 GPUs at once; 1 are in use and this pod needs 1.", func() { h.Limits.ProGPUs = 64 }},
		{"too many early ends", pod.ErrSetups, "", func() { h.Limits.FreeSetups = 5 }},
		{"a dispute", wallet.ErrHeld, "", func() {
			h.tx(func(tx pgx.Tx) error { return h.wallet.LiftTx(t.Context(), tx, hold) })
		}},
		{"too little for the runway", wallet.ErrInsufficient, "", func() { h.Limits.MinRunway = 0 }},
		{"in use", volume.ErrInUse, "Volume is in use", func() {}},
	} {
		before := h.tables()
		_, err := h.Create(t.Context(), scope, ask)
		if !errors.Is(err, step.want) || step.detail != "" && fault.Of(err).Detail != step.detail {
			t.Fatalf("%s: %v (%s), want %v", step.name, err, fault.Of(err).Detail, step.want)
		}
		if diff := cmp.Diff(before, h.tables()); diff != "" {
			t.Errorf("%s left a trace:\n%s", step.name, diff)
		}
		step.mend()
	}
}

// A wallet with a cent rents, one with less does not; a configured runway is
// named with its sum.
func TestTheWalletMustHoldACent(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	for amount, want := range map[money.USD]error{0: wallet.ErrInsufficient, money.Cent - 1: wallet.ErrInsufficient, money.Cent: nil} {
		scope := h.team(team.Hobby, amount)
		if _, err := h.Create(t.Context(), scope, h.ask(scope)); !errors.Is(err, want) {
			t.Errorf("with %s: %v, want %v", amount.Decimal(), err, want)
		}
	}
	h.Limits.MinRunway = 10 * time.Minute
	for amount, want := range map[money.USD]error{433_332: wallet.ErrInsufficient, 433_334: nil} { // 2.60 x 10/60
		scope := h.team(team.Hobby, amount)
		_, err := h.Create(t.Context(), scope, h.ask(scope))
		if !errors.Is(err, want) {
			t.Errorf("with %s for 10 minutes: %v, want %v", amount.Decimal(), err, want)
		}
		if f := fault.Of(err); want != nil && f.Detail != "Insufficient Funds: this pod needs a balance of at least $0.44." {
			t.Errorf("the refusal says %q", f.Detail)
		}
	}
}

// A raised maximum is ignored: ours is charged.
func TestARaisedPriceIsIgnored(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Hobby, money.Dollar)
	ask := h.ask(scope)
	ask.Max = 1_000_000_000
	p, err := h.Create(t.Context(), scope, ask)
	h.must(err)
	if p.Rate != 2_600_000 || p.ListRate != 2_600_000 {
		t.Errorf("rate %s, list %s", p.Rate.Decimal(), p.ListRate.Decimal())
	}
}

// race runs fn n times at once.
func race(n int, fn func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { fn(i) })
	}
	wg.Wait()
}

func TestOneVolumeGetsOnePod(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro, 10*money.Dollar)
	ask := h.ask(scope)
	errs := make([]error, 64)
	race(64, func(i int) { _, errs[i] = h.Create(t.Context(), scope, ask) })
	made := 0
	for _, err := range errs {
		switch {
		case err == nil:
			made++
		case !errors.Is(err, volume.ErrInUse) || fault.Of(err).Detail != "Volume is in use":
			t.Error(err)
		}
	}
	pods, err := h.List(t.Context(), scope)
	if made != 1 || len(pods) != 1 || err != nil {
		t.Errorf("%d answers, %d pods, %v", made, len(pods), err)
	}
	h.work()
	if n := h.a.count("launch") + h.b.count("launch"); n != 1 {
		t.Errorf("%d machines were asked for", n)
	}
}

func TestOneKeyGetsOneAnswer(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro, 10*money.Dollar)
	ask := h.ask(scope)
	ask.Once = idem.Request{Scope: "user POST /pods", Key: "a key", BodyHash: []byte("body"), Wall: h.clock.Wall()}
	ids := make([]uuid.UUID, 64)
	race(64, func(i int) {
		p, err := h.Create(t.Context(), scope, ask)
		if err != nil {
			t.Error(err)
			return
		}
		ids[i] = p.ID
	})
	for _, got := range ids {
		if got != ids[0] {
			t.Fatalf("one key made %s and %s", ids[0], got)
		}
	}
	if pods, err := h.List(t.Context(), scope); len(pods) != 1 || err != nil {
		t.Errorf("%d pods, %v", len(pods), err)
	}
	ask.Once.BodyHash = []byte("another")
	if _, err := h.Create(t.Context(), scope, ask); !errors.Is(err, idem.ErrMismatch) {
		t.Errorf("another body: %v", err)
	}
	h.must(h.Delete(t.Context(), scope, ids[0]))
	ask.Once.BodyHash = []byte("body")
	if p, err := h.Create(t.Context(), scope, ask); err != nil || p.ID != ids[0] || p.Status != pod.Deleted {
		t.Errorf("the key after the pod's end: %+v, %v", p, err)
	}
	ask.Once.Wall = ask.Once.Wall.Add(24 * time.Hour)
	if p, err := h.Create(t.Context(), scope, ask); err != nil || p.ID == ids[0] {
		t.Errorf("the key after a day: %v", err)
	}
}

// A refusal is no answer: the same key may be tried again.
func TestARefusedKeyIsFree(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Hobby, 0)
	ask := h.ask(scope)
	ask.Once = idem.Request{Scope: "user POST /pods", Key: "a key", BodyHash: []byte("body"), Wall: h.clock.Wall()}
	if _, err := h.Create(t.Context(), scope, ask); !errors.Is(err, wallet.ErrInsufficient) {
		t.Fatal(err)
	}
	h.credit(scope, money.Dollar)
	_, err := h.Create(t.Context(), scope, ask)
	h.must(err)
}

func TestGPULimitHoldsInARace(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, func(l *pod.Limits) { l.ProGPUs = 4 })
	scope := h.team(team.Pro, 10*money.Dollar)
	asks := make([]pod.Create, 16)
	for i := range asks {
		asks[i] = h.ask(scope)
	}
	ports := make([]int, 16)
	race(16, func(i int) {
		p, err := h.Create(t.Context(), scope, asks[i])
		if err == nil {
			ports[i] = p.SSHPort
			return
		}
		if !errors.Is(err, pod.ErrGPULimit) {
			t.Error(err)
		}
	})
	seen := map[int]bool{}
	for _, port := range ports {
		if port != 0 && seen[port] {
			t.Errorf("port %d was given twice", port)
		}
		seen[port] = port != 0
	}
	pods, err := h.List(t.Context(), scope)
	if len(pods) != 4 || err != nil {
		t.Errorf("%d pods, %v", len(pods), err)
	}
	h.must(h.Delete(t.Context(), scope, pods[0].ID)) // its GPU is free at once
	if _, err := h.Create(t.Context(), scope, h.ask(scope)); err != nil {
		t.Error(err)
	}
}

// A freed port goes to the end of the queue, whoever asks next.
func TestPortsAreTakenInTurn(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, func(l *pod.Limits) { l.PortFirst, l.PortLast, l.FreeSetups = 20000, 20002, 100 })
	scope := h.team(team.Pro, 10*money.Dollar)
	var got []int
	for range 6 {
		p := h.rent(scope)
		got = append(got, p.SSHPort)
		h.must(h.Delete(t.Context(), scope, p.ID))
		h.clock.Advance(time.Minute)
	}
	if diff := cmp.Diff([]int{20000, 20001, 20002, 20000, 20001, 20002}, got); diff != "" {
		t.Error(diff)
	}
	for range 3 {
		h.rent(scope)
	}
	if _, err := h.Create(t.Context(), scope, h.ask(scope)); !errors.Is(err, pod.ErrNoPort) {
		t.Errorf("without a free port: %v", err)
	}
}

// A team may end five set-ups a day before they were ready.
func TestEarlyEndsAreLimited(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope, other := h.team(team.Pro, 10*money.Dollar), h.team(team.Pro, 10*money.Dollar)
	for range 5 {
		p := h.rent(scope)
		h.work()
		h.must(h.Delete(t.Context(), scope, p.ID))
	}
	if _, err := h.Create(t.Context(), scope, h.ask(scope)); !errors.Is(err, pod.ErrSetups) {
		t.Errorf("the sixth: %v", err)
	}
	h.rent(other)
	h.clock.Advance(12 * time.Hour) // the next UTC day
	h.rent(scope)
}

func TestWhoMayDelete(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	admin := h.team(team.Pro, 10*money.Dollar)
	creator := teamtest.Join(t, h.pool, admin.TeamID(), team.Member)
	member := teamtest.Join(t, h.pool, admin.TeamID(), team.Member)
	stranger := h.team(team.Pro, money.Dollar)
	p := h.rent(creator)
	for name, tt := range map[string]struct {
		scope team.Scope
		want  error
	}{"another member": {member, pod.ErrNotYours}, "a stranger": {stranger, pod.ErrNotFound}} {
		if err := h.Delete(t.Context(), tt.scope, p.ID); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
		h.is(creator, p, pod.Pending)
	}
	if err := h.Delete(t.Context(), admin, id.New()); !errors.Is(err, pod.ErrNotFound) {
		t.Errorf("no pod: %v", err)
	}
	h.must(h.Delete(t.Context(), creator, p.ID))
	h.must(h.Delete(t.Context(), admin, p.ID))
	p = h.rent(creator)
	h.must(h.Delete(t.Context(), admin, p.ID))
	h.is(admin, p, pod.Deleted)
}

// What ended is listed for 15 minutes of wall time, newest first.
func TestTheListForgetsWhatEnded(t *testing.T) {
	t.Parallel()
	h := newHarbour(t)
	scope := h.team(team.Pro, 10*money.Dollar)
	first := h.rent(scope)
	h.clock.Advance(time.Second)
	second := h.rent(scope)
	h.must(h.Delete(t.Context(), scope, second.ID))
	h.clock.SetOffset(48 * time.Hour) // business time does not matter here
	checkList(t.Context(), h, scope, 0, []uuid.UUID{second.ID, first.ID})
	h.clock.Advance(15*time.Minute - time.Microsecond)
	checkList(t.Context(), h, scope, 15*time.Minute-time.Microsecond, []uuid.UUID{second.ID, first.ID})
	h.clock.Advance(time.Microsecond)
	checkList(t.Context(), h, scope, 15*time.Minute, []uuid.UUID{first.ID})
}

func checkList(ctx context.Context, h *harbour, scope team.Scope, after time.Duration, want []uuid.UUID) {
	h.t.Helper()
	pods, err := h.List(ctx, scope)
	h.must(err)
	got := make([]uuid.UUID, 0, len(pods))
	for _, p := range pods {
		got = append(got, p.ID)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		h.t.Errorf("after %s: %s", after, diff)
	}
}
