package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/apitype"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/wallet"
)

// A mute cloud answers nothing.
type mute struct{ provider.Adapter }

func (mute) Offers(ctx context.Context) ([]provider.Offer, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (mute) Find(ctx context.Context, _ string) ([]provider.Machine, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// runs moves somebody in whom the configuration names.
func (w *town) runs() person {
	w.t.Helper()
	p := w.move(money.Dollar)
	w.operator.Emails = append(w.operator.Emails, strings.ToLower(w.email(p)))
	return p
}

// Who is no operator is told what is told of a path that does not exist, to the
// byte; admins of teams, too, and whatever else is wrong with the request.
func TestOperatorsCallsAreNotThereForOthers(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	boss, user := w.runs(), w.move(money.Dollar)
	admin := w.move(money.Dollar)
	w.join(admin, w.found(user), team.Admin)
	for _, path := range []string{"/operator/overview", "/operator/margins", "/operator/margins?days=7", "/operator/margins?days=x", "/operator/margins?days=91"} {
		w.problem(w.call("", http.MethodGet, path, ""), 401, "no_session")
		w.problem(w.call("no such", http.MethodGet, path, ""), 401, "bad_jwt")
		for _, other := range []person{user, admin} {
			there, nowhere := w.call(other.token, http.MethodGet, path, ""), w.call(other.token, http.MethodGet, "/no/such/path", "")
			w.problem(there, 404, "no_such_path")
			if diff := cmp.Diff(nowhere.Body.String(), there.Body.String()); diff != "" {
				t.Errorf("%s: (-unknown path +this):\n%s", path, diff)
			}
			if diff := cmp.Diff(nowhere.Header(), there.Header()); diff != "" {
				t.Errorf("%s: (-unknown path +this):\n%s", path, diff)
			}
		}
	}
	for _, path := range []string{"/operator/overview", "/operator/margins", "/operator/margins?days=90"} {
		w.is(w.call(boss.token, http.MethodGet, path, ""), 200)
	}
	for _, days := range []string{"0", "91", "-1", "x", "1.5"} {
		w.problem(w.call(boss.token, http.MethodGet, "/operator/margins?days="+days, ""), 422, "invalid_input")
	}
	var info map[string]any
	w.is(w.call(user.token, http.MethodGet, "/user/info", ""), 200).json(t, &info)
	if _, told := info["operator"]; told {
		t.Error("a user is told of operators")
	}
	w.is(w.call(boss.token, http.MethodGet, "/user/info", ""), 200).json(t, &info)
	if info["operator"] != true {
		t.Errorf("the operator is told %v", info["operator"])
	}
}

// The figures are those of the rows, and none is there twice or null.
func TestOperatorsFigures(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	boss, user := w.runs(), w.move(10*money.Dollar)
	volumeID := w.make(user, "/volumes", `{"name":"data","team_id":"`+user.team+`"}`)
	keyID := w.make(user, "/ssh-keys?team_id="+user.team, `{"name":"laptop","public_key":"`+publicKey+`","team_id":"`+user.team+`"}`)
	podID := w.make(user, "/pods", `{"volume_id":"`+volumeID+`","ssh_key_id":"`+keyID+`","team_id":"`+user.team+`","cloud_id":"h100-1","gpu_type":"H100_80GB",
		"socket":"SXM5","country":"US","gpu_count":1,"gpu_memory":80,"vcpu":24,"memory":200,"price":2.6,"currency":"USD","default_disk_size":500,
		"disk_price":null,"security":"secure_cloud","provider":"aurora","is_spot":false,"data_center_id":null,"image":"ubuntu"}`)
	ctx, meter := t.Context(), func(do func(tx pgx.Tx) error) { w.must(pg.InTx(t.Context(), w.pool, do)) }
	w.clock.Advance(time.Hour)
	meter(func(tx pgx.Tx) error {
		return w.wallet.StartTx(ctx, tx, wallet.Start{
			TeamID: uuid.MustParse(user.team), ResourceID: uuid.MustParse(podID), Kind: wallet.PodRuntime, Rate: 2_600_000, At: w.clock.Now(),
		})
	})
	w.clock.Advance(time.Hour)
	meter(func(tx pgx.Tx) error { return w.wallet.StopTx(ctx, tx, uuid.MustParse(podID), w.clock.Now()) })
	w.clock.Advance(time.Hour)
	now := w.clock.Now()
	exec := func(sql string, args ...any) {
		t.Helper()
		_, err := w.pool.Exec(ctx, sql, args...)
		w.must(err)
	}
	// The pod's machine is asked for 3 h ago and ends for 20 min; it was metered for 1 h.
	exec(`update pod set status = 'deleted', ended_at = $2, ready_at = $3, stopped_at = $4, attempts = 1 where id = $1`,
		podID, now, now.Add(-2*time.Hour), now.Add(-time.Hour))
	exec(`insert into instance (id, pod_id, attempt, name, provider, offer, state, node_id, token_hash, ref, host, ssh_port, reason, created_wall_at, state_wall_at, tries)
		select gen_random_uuid(), id, 1, 'hp-x', 'a', offer, 'terminating', gen_random_uuid(), 'x', 'ref', '', 1, 'stuck', $2, $3, 7 from pod where id = $1`,
		podID, now.Add(-3*time.Hour), now.Add(-20*time.Minute))
	exec(`insert into orphan (provider, ref, name, first_seen_wall_at) values ('a', '7', 'hp-orphan', $1)`, now)
	exec(`insert into provider_breaker (adapter, state, reason, failures, since_at, opened_at, probe_at, opens, trouble)
		values ('a', 'open', 'funds', 0, $1, $1, $2, 1, 'no money')`, now, now.Add(time.Minute))
	w.must(w.wallet.CheckNight(ctx, now))

	var o apitype.OperatorOverview
	answer := w.is(w.call(boss.token, http.MethodGet, "/operator/overview", ""), 200)
	answer.json(t, &o)
	if strings.Contains(answer.Body.String(), "null") {
		t.Errorf("null in %s", answer.Body)
	}
	if len(o.Providers) != 1 {
		t.Fatalf("%d providers", len(o.Providers))
	}
	p := o.Providers[0]
	if p.Provider != "a" || p.Health != "no_funds" || p.Breaker.State != "open" || p.Breaker.ProbeAt == nil || p.Trouble != "no money" || p.Offers != 1 ||
		p.ListedAt == nil || p.Score != 100 || p.Instances.Terminating != 1 || p.Orphans != 1 || p.BurnPerHour != "2" || p.Balance != nil || p.BalanceByAPI {
		t.Errorf("the provider: %+v", p)
	}
	in := o.Instances
	if in.Pods != 0 || in.TerminatingLong != 1 || in.WithoutPod != 1 || len(in.Troubled) != 1 || in.Troubled[0].PodID != podID || in.Troubled[0].Tries != 7 ||
		in.Troubled[0].BurnPerHour != "2" || len(in.OrphanList) != 1 || in.OrphanList[0].Name != "hp-orphan" || !in.Reaper.Armed || in.TroubledLeftOut != 0 {
		t.Errorf("the instances: %+v", in)
	}
	if o.Ledger == nil || !o.Ledger.OK || o.Ledger.Late || o.Ledger.Wallets != 2 || !o.Ledger.CheckedAt.Equal(now) {
		t.Errorf("the books: %+v", o.Ledger)
	}
	if o.Jobs.Retrying != 3 || o.Jobs.GivenUpDay != 1 || len(o.Jobs.Kinds) != 1 || o.Jobs.Kinds[0].LastError != "it broke" {
		t.Errorf("the jobs: %+v", o.Jobs)
	}
	var m apitype.OperatorMargins
	w.is(w.call(boss.token, http.MethodGet, "/operator/margins?days=2", ""), 200).json(t, &m)
	want := apitype.OperatorMargin{Paid: "2.6", Upstream: "6", Margin: "-3.4", Negative: true, PaidSeconds: 3600, MachineSeconds: 3 * 3600}
	if len(m.PerDay) != 2 || m.PerDay[1].Day != now.Format(time.DateOnly) || m.PerDay[0].Paid != "0" || m.Days != 2 {
		t.Errorf("the days: %+v", m.PerDay)
	}
	for what, got := range map[string]apitype.OperatorMargin{
		"total": m.Total, "day": m.PerDay[1].OperatorMargin, "provider": m.PerProvider[0].OperatorMargin,
		"provider's day": m.PerProviderDay[0].OperatorMargin, "offer": m.PerOffer[0].OperatorMargin,
	} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	if of := m.PerOffer[0]; of.Provider != "a" || of.Cloud != "aurora" || of.GPUType != "H100_80GB" || of.GPUCount != 1 {
		t.Errorf("the offer: %+v", of)
	}
}

// A cloud that hangs holds nobody up here, on any node: only rows are read.
func TestOperatorsViewAsksNoCloud(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	boss := w.runs()
	w.offers.Adapters["a"] = mute{}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	done := make(chan int, 1)
	go func() { done <- w.call(boss.token, http.MethodGet, "/operator/overview", "").Code }()
	select {
	case code := <-done:
		if code != http.StatusOK {
			t.Errorf("status %d", code)
		}
	case <-ctx.Done():
		t.Fatal("it waits for a cloud")
	}
}
