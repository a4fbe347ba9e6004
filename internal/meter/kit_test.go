package meter_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"homeport.dev/homeport/internal/blob/dir"
	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/mail"
	"homeport.dev/homeport/internal/meter"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/notice"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/pg/pgtest"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/team/teamtest"
	"homeport.dev/homeport/internal/volume"
	"homeport.dev/homeport/internal/wallet"
)

// A yard is the teams' money with everything that follows it; pods are a fleet.
type yard struct {
	t       testing.TB
	pool    *pgxpool.Pool
	w       *wallet.Service
	m       *meter.Service
	v       *volume.Service
	notices *notice.Service
	fleet   *fleet
	clock   *clock.Manual
	jobs    *job.Recorder
	post    *postbox
	purged  map[uuid.UUID]time.Time
}

// A postbox keeps the letters that were sent.
type postbox struct {
	mu      sync.Mutex
	letters []mail.Message
	seen    map[string]bool // by key
}

func (p *postbox) Send(_ context.Context, m mail.Message) error {
	if err := m.Check(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.letters = append(p.letters, m)
	return nil
}

func newYard(t testing.TB) *yard {
	t.Helper()
	y := &yard{
		t: t, pool: pgtest.New(t), clock: clock.Fixed(noon), jobs: &job.Recorder{}, post: &postbox{seen: map[string]bool{}},
		fleet:  &fleet{locked: map[uuid.UUID]bool{}, broken: map[uuid.UUID]bool{}},
		purged: map[uuid.UUID]time.Time{},
	}
	logger := slog.New(slog.DiscardHandler)
	store, err := dir.New(t.TempDir(), []byte("0123456789abcdef"), y.clock.Wall)
	y.must(err)
	y.w = wallet.New(wallet.Deps{Pool: y.pool, Clock: y.clock.Clock, Logger: logger})
	teams := team.New(team.Deps{Pool: y.pool, Clock: y.clock.Clock, Jobs: y.jobs, Logger: logger, Hooks: team.Hooks{
		Emails: func(_ context.Context, _ pgx.Tx, users []uuid.UUID) (map[uuid.UUID]string, error) {
			out := map[uuid.UUID]string{}
			for _, u := range users {
				out[u] = id.First(u) + "@example.org"
			}
			return out, nil
		},
	}})
	y.v = volume.New(volume.Deps{
		Pool: y.pool, Clock: y.clock.Clock, Logger: logger, Jobs: y.jobs, Store: store, Signer: store, Wallet: y.w,
		OnPurgeTx: func(_ context.Context, _ pgx.Tx, p volume.Purged) error {
			y.purged[p.VolumeID] = p.At
			return nil
		},
	})
	y.notices = notice.New(notice.Deps{
		Pool: y.pool, Clock: y.clock.Clock, Logger: logger, Jobs: y.jobs, Mail: y.post, Teams: teams, Wallet: y.w,
		PublicURL: "https://homeport.example",
	})
	y.m = meter.New(meter.Deps{
		Pool: y.pool, Clock: y.clock.Clock, Logger: logger, Wallet: y.w, Pods: y.fleet, Volumes: y.v, Notices: y.notices,
	})
	return y
}

func (y *yard) must(err error) {
	y.t.Helper()
	if err != nil {
		y.t.Fatal(err)
	}
}

func (y *yard) tx(do func(ctx context.Context, tx pgx.Tx) error) {
	y.t.Helper()
	ctx := y.t.Context()
	y.must(pg.InTx(ctx, y.pool, func(tx pgx.Tx) error { return do(ctx, tx) }))
}

// team makes a team with a wallet.
func (y *yard) team(plan team.Plan) team.Scope {
	y.t.Helper()
	scope := teamtest.Admin(y.t, y.pool, plan)
	y.tx(func(ctx context.Context, tx pgx.Tx) error { return y.w.OpenTx(ctx, tx, scope.TeamID(), y.clock.Now()) })
	return scope
}

func (y *yard) pay(scope team.Scope, amount money.USD) {
	y.t.Helper()
	y.tx(func(ctx context.Context, tx pgx.Tx) error {
		_, err := y.w.CreditTx(ctx, tx, wallet.Credit{
			TeamID: scope.TeamID(), Amount: amount, Source: wallet.Test, Key: id.New().String(), At: y.clock.Now(),
		})
		return err
	})
}

func (y *yard) start(scope team.Scope, resource uuid.UUID, kind wallet.Kind, rate money.Rate) {
	y.t.Helper()
	y.tx(func(ctx context.Context, tx pgx.Tx) error {
		return y.w.StartTx(ctx, tx, wallet.Start{TeamID: scope.TeamID(), ResourceID: resource, Kind: kind, Rate: rate, At: y.clock.Now()})
	})
}

func (y *yard) stop(resource uuid.UUID) {
	y.t.Helper()
	y.tx(func(ctx context.Context, tx pgx.Tx) error { return y.w.StopTx(ctx, tx, resource, y.clock.Now()) })
}

// volume makes a volume that holds and costs something.
func (y *yard) volume(scope team.Scope, gb int64) uuid.UUID {
	y.t.Helper()
	v, err := y.v.Create(y.t.Context(), scope, "data", idem.Request{})
	y.must(err)
	_, err = y.pool.Exec(y.t.Context(), `update volume set size_bytes = $2, metered = true, head_seq = 1, head_time_ns = 1,
		head_snapshot = decode(repeat('01', 32), 'hex'), head_tree = decode(repeat('01', 32), 'hex') where id = $1`, v.ID, gb*1_000_000_000)
	y.must(err)
	y.start(scope, v.ID, wallet.VolumeStorage, volume.RateOf(gb*1_000_000_000))
	return v.ID
}

// wait lets business time pass, all at once, as the development door does.
func (y *yard) wait(d time.Duration) {
	y.t.Helper()
	y.clock.Advance(d)
	y.must(y.m.RunDue(y.t.Context(), y.clock.Now()))
}

func (y *yard) balance(scope team.Scope) wallet.Balance {
	y.t.Helper()
	b, err := y.w.Balance(y.t.Context(), scope, y.clock.Now())
	y.must(err)
	return b
}

// kinds are the notices that the scope's person sees.
func (y *yard) kinds(scope team.Scope) string {
	y.t.Helper()
	list, err := y.notices.List(y.t.Context(), scope, y.clock.Now())
	y.must(err)
	var out []string
	for _, n := range list {
		out = append(out, string(n.Kind))
	}
	return strings.Join(out, " ")
}

// letters sends what is queued and returns the subjects of what came since.
func (y *yard) letters() []string {
	y.t.Helper()
	y.post.mu.Lock()
	y.post.letters = nil
	y.post.mu.Unlock()
	for _, j := range y.jobs.Take() {
		if l, ok := j.(notice.LetterJob); ok {
			y.must(y.notices.SendLetter(y.t.Context(), l))
		}
	}
	subjects := []string{}
	for _, m := range y.post.letters {
		if n := strings.Count(m.Text, "http"); n != 1 {
			y.t.Errorf("a letter has %d links:\n%s", n, m.Text)
		}
		if m.HTML == "" {
			y.t.Errorf("%q has no HTML part", m.Subject)
		}
		subjects = append(subjects, m.Subject)
	}
	return subjects
}
