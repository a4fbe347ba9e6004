package app

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/offer"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/pg/pgtest"
	"homeport.dev/homeport/internal/pod"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/volume"
	"homeport.dev/homeport/internal/wallet"
)

// A quay is a whole node, wired as a server's, that serves nobody and runs
// nothing in the background: what its jobs would do, the tests do.
type quay struct {
	*App
	t *testing.T
}

// newQuay takes settings as pairs of name and value.
func newQuay(t *testing.T, settings ...string) *quay {
	t.Helper()
	given := map[string]string{"DATABASE_URL": pgtest.URL(t), "STATE_DIR": t.TempDir(), "METRICS_ADDR": "off"}
	for i := 0; i+1 < len(settings); i += 2 {
		given[settings[i]] = settings[i+1]
	}
	c, err := Load(nil, given)
	if err != nil {
		t.Fatal(err)
	}
	a, err := open(t.Context(), c, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	q := &quay{App: a, t: t}
	q.must(a.pods.Prepare(t.Context()))
	q.must(a.offers.Refresh(t.Context()))
	return q
}

func (q *quay) must(err error) {
	q.t.Helper()
	if err != nil {
		q.t.Fatal(err)
	}
}

func (q *quay) do(fn func(ctx context.Context, tx pgx.Tx) error) {
	q.t.Helper()
	ctx := q.t.Context()
	q.must(pg.InTx(ctx, q.pool, func(tx pgx.Tx) error { return fn(ctx, tx) }))
}

func (q *quay) exec(sql string, args ...any) {
	q.t.Helper()
	_, err := q.pool.Exec(q.t.Context(), sql, args...)
	q.must(err)
}

// sailor makes a user, as their first sign-in does.
func (q *quay) sailor(name string) team.Person {
	q.t.Helper()
	p := team.Person{ID: id.New(), Email: name + "@example.org"}
	q.exec(`insert into auth_user (id, email, email_folded, created_at, email_confirmed_at, last_sign_in_at)
		values ($1, $2, $2, $3, $3, $3)`, p.ID, p.Email, q.clock.Wall())
	return p
}

// crew makes a Pro team of five seats with a wallet; the first person is its
// admin, the others are members.
func (q *quay) crew(people ...team.Person) team.Scope {
	q.t.Helper()
	teamID := id.New()
	q.exec(`insert into team (id, name, description, plan, state, max_members, created_by, created_at)
		values ($1, 'Docks', '', 'pro', 'active', 5, $2, $3)`, teamID, people[0].ID, q.clock.Now())
	q.do(func(ctx context.Context, tx pgx.Tx) error { return q.wallet.OpenTx(ctx, tx, teamID, q.clock.Now()) })
	for i, p := range people {
		role := team.Member
		if i == 0 {
			role = team.Admin
		}
		q.exec(`insert into membership (id, team_id, user_id, role, created_at) values ($1, $2, $3, $4, $5)`,
			id.New(), teamID, p.ID, role, q.clock.Now().Add(time.Duration(i)*time.Second))
	}
	return q.scope(people[0], teamID, team.Manage)
}

func (q *quay) scope(p team.Person, teamID uuid.UUID, need team.Right) team.Scope {
	q.t.Helper()
	scope, err := q.teams.Authorize(q.t.Context(), p, teamID, need)
	q.must(err)
	return scope
}

// home is a person's personal team.
func (q *quay) home(p team.Person) team.Scope {
	q.t.Helper()
	info, err := q.teams.UserInfo(q.t.Context(), p)
	q.must(err)
	return q.scope(p, info.Personal.ID, team.Manage)
}

// pay tops a team up, as a paid checkout of the person does.
func (q *quay) pay(p team.Person, teamID uuid.UUID, amount money.USD) {
	q.t.Helper()
	payment := "pi_" + id.New().String()
	now := q.clock.Now()
	q.exec(`insert into topup (id, team_id, user_id, amount_usd_micro, processor, status, payment_id, created_at, opened_at, closed_at)
		values ($1, $2, $3, $4, 'test', 'paid', $5, $6, $6, $6)`, id.New(), teamID, p.ID, amount, payment, now)
	q.do(func(ctx context.Context, tx pgx.Tx) error {
		_, err := q.wallet.CreditTx(ctx, tx, wallet.Credit{
			TeamID: teamID, Amount: amount, Source: wallet.Test, ReferenceID: payment, Key: "stripe:pi:" + payment, At: now,
		})
		return err
	})
}

const publicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIG/Kc3/1tpfaWZ+oLKv8G4XEbsMUQMECdPnBaOQTIPZz"

// want is the wish for the cheapest pod, with a new volume and a key.
func (q *quay) want(scope team.Scope, key string) pod.Create {
	q.t.Helper()
	ctx := q.t.Context()
	volume, err := q.volumes.Create(ctx, scope, "data", idem.Request{})
	q.must(err)
	sshKey, err := q.keys.Create(ctx, scope, "laptop", key, idem.Request{})
	q.must(err)
	groups, _, err := q.offers.Resources(ctx, scope.Plan())
	q.must(err)
	offers := slices.Concat(slices.Collect(maps.Values(groups))...)
	best := slices.MinFunc(offers, func(a, b offer.Priced) int { return cmp.Compare(a.Price, b.Price) })
	return pod.Create{
		VolumeID: volume.ID, KeyID: sshKey.ID, Offer: offer.TupleOf(best.Offer.Offer), Max: best.Price, Currency: "USD",
	}
}

func (q *quay) balance(scope team.Scope) money.USD {
	q.t.Helper()
	b, err := q.wallet.Balance(q.t.Context(), scope, q.clock.Now())
	q.must(err)
	return b.Balance
}

// A deleted team leaves nothing running, nothing lost and nothing reachable.
func TestDeletingATeamEndsWhatItOwned(t *testing.T) {
	t.Parallel()
	q := newQuay(t)
	ctx := t.Context()
	ada, bob := q.sailor("ada"), q.sailor("bob")
	docks := q.crew(ada, bob)
	adas, bobs := q.home(ada), q.home(bob)
	q.pay(bob, docks.TeamID(), 20*money.Dollar)
	q.pay(ada, docks.TeamID(), 7*money.Dollar)
	wish := q.want(docks, publicKey)
	if _, err := q.teams.Invite(ctx, docks, "eve@example.org", idem.Request{}); err != nil {
		t.Fatal(err)
	}
	made, err := q.pods.Create(ctx, docks, wish)
	q.must(err)
	refused := func(want *fault.Error, detail string) {
		t.Helper()
		if err := q.teams.Delete(ctx, docks); !errors.Is(err, want) || fault.Of(err).Detail != detail {
			t.Errorf("deleted: %v, want %q", err, detail)
		}
	}
	refused(pod.ErrRunning, "Delete the 1 running pods first.")
	q.must(q.pods.Delete(ctx, docks, made.ID))
	hold := wallet.Hold{TeamID: docks.TeamID(), ReferenceID: "dp_1"}
	q.do(func(ctx context.Context, tx pgx.Tx) error { return q.wallet.HoldTx(ctx, tx, hold, q.clock.Now()) })
	refused(wallet.ErrUnsettled, "Settle the balance first.")
	q.do(func(ctx context.Context, tx pgx.Tx) error { return q.wallet.LiftTx(ctx, tx, hold) })
	if keys, err := q.keys.List(ctx, docks); err != nil || len(keys) != 1 {
		t.Fatalf("a refused deletion took keys: %d, %v", len(keys), err)
	}
	// Ten dollars of storage, so that all of Ada's and seventeen of Bob's are left.
	q.exec(`update volume set size_bytes = 500000000000, metered = true where id = $1`, wish.VolumeID)
	q.do(func(ctx context.Context, tx pgx.Tx) error {
		return q.wallet.StartTx(ctx, tx, wallet.Start{
			TeamID: docks.TeamID(), ResourceID: wish.VolumeID, Kind: wallet.VolumeStorage, Rate: 100_000, At: q.clock.Now(),
		})
	})
	q.clock.SetOffset(100 * time.Hour)
	q.must(q.teams.Delete(ctx, docks))

	if spent := 27*money.Dollar - q.balance(adas) - q.balance(bobs); spent < 10*money.Dollar || spent > 10*money.Dollar+money.Cent {
		t.Errorf("27 were paid, 10 spent: %s and %s came back", q.balance(adas).Decimal(), q.balance(bobs).Decimal())
	}
	if q.balance(adas) != 7*money.Dollar {
		t.Errorf("the newest payment came back as %s", q.balance(adas).Decimal())
	}
	trash, err := q.volumes.ListDeleted(ctx, adas)
	if err != nil || len(trash) != 1 || trash[0].ID != wish.VolumeID {
		t.Fatalf("the deleter's trash: %+v, %v", trash, err)
	}
	q.clock.SetOffset((100 + 29*24) * time.Hour)
	q.pay(ada, adas.TeamID(), 100*money.Dollar)
	if v, err := q.volumes.Restore(ctx, adas, wish.VolumeID, idem.Request{}); err != nil || v.TeamID != adas.TeamID() {
		t.Errorf("restored after 29 days: %+v, %v", v, err)
	}
	eve := q.sailor("eve")
	if info, err := q.teams.UserInfo(ctx, eve); err != nil || len(info.Teams) != 1 {
		t.Errorf("an invitation outlived its team: %+v, %v", info.Teams, err)
	}
	for _, p := range []team.Person{ada, bob} {
		if _, err := q.teams.Authorize(ctx, p, docks.TeamID(), team.Read); !errors.Is(err, team.ErrNotFound) {
			t.Errorf("%s: %v", p.Email, err)
		}
	}
	if problems, err := q.wallet.Verify(ctx); err != nil || len(problems) > 0 {
		t.Errorf("the books: %v, %v", problems, err)
	}
}

// A checkout that was open when the team was deleted is paid to its payer.
func TestLateMoneyFindsItsPayer(t *testing.T) {
	t.Parallel()
	q := newQuay(t)
	ada, bob := q.sailor("ada"), q.sailor("bob")
	docks := q.crew(ada, bob)
	bobs := q.home(bob)
	q.must(q.teams.Delete(t.Context(), docks))
	q.pay(bob, docks.TeamID(), 5*money.Dollar)
	for range 2 {
		q.must(q.returnLateMoney(t.Context()))
		if got := q.balance(bobs); got != 5*money.Dollar {
			t.Errorf("bob has %s", got.Decimal())
		}
	}
}

// However a deletion and new pods meet, there is never both: no pod of a
// deleted team, and no deleted team with a pod.
func TestADeletedTeamHasNoPod(t *testing.T) {
	t.Parallel()
	q := newQuay(t)
	ctx := t.Context()
	ada := q.sailor("ada")
	for round := range 8 {
		docks := q.crew(ada)
		q.pay(ada, docks.TeamID(), 100*money.Dollar)
		wishes := make([]pod.Create, 4)
		for i := range wishes {
			wishes[i] = q.want(docks, publicKey)
		}
		var wg sync.WaitGroup
		start := make(chan struct{})
		for i := range 64 {
			wg.Go(func() {
				<-start
				if (i+round)%2 == 0 {
					if err := q.teams.Delete(ctx, docks); err != nil && !errors.Is(err, pod.ErrRunning) && !errors.Is(err, team.ErrNotFound) {
						t.Errorf("delete: %v", err)
					}
					return
				}
				_, err := q.pods.Create(ctx, docks, wishes[i%len(wishes)])
				if err != nil && !errors.Is(err, volume.ErrInUse) && !errors.Is(err, team.ErrNotFound) {
					t.Errorf("create: %v", err)
				}
			})
		}
		close(start)
		wg.Wait()
		var state string
		var pods, attached int
		err := q.pool.QueryRow(ctx, `select t.state, (select count(*) from pod p where p.team_id = t.id and p.status <> 'deleted'),
			(select count(*) from volume v where v.id = any($2) and v.pod_id is not null) from team t where t.id = $1`,
			docks.TeamID(), []uuid.UUID{wishes[0].VolumeID, wishes[1].VolumeID, wishes[2].VolumeID, wishes[3].VolumeID},
		).Scan(&state, &pods, &attached)
		q.must(err)
		if deleted := state == "deleted"; deleted != (pods == 0) || pods != attached {
			t.Fatalf("the team is %s and has %d pods on %d volumes", state, pods, attached)
		}
	}
}
