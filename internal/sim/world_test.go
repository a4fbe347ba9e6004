// Package sim_test runs the real server and the real database for a long time
// against a made-up world, kills both again and again, and compares the books
// with what that world knows. A seed draws what happens.
package sim_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/wallet"
)

// fromEnv reads how much to simulate: `make sim` asks for more than a test run.
func fromEnv(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return otherwise
}

// A world is the system under test and everybody who uses it.
type world struct {
	t      *testing.T
	random *rand.Rand
	db     *database
	app    *process
	cards  *network
	pool   *pgxpool.Pool // ours, beside the server's
	w      *wallet.Service
	teams  *team.Service

	mu        sync.Mutex
	customers []*customer
	wallets   []uuid.UUID // those that get resources
	granted   map[uuid.UUID]int64
	fleet     []*resource // what keeps the settlement busy
	meters    [][]*resource

	bought                  atomic.Int64
	appCrashes, dbCrashes   int
	atPoints, interruptions int // deaths at failpoints; calls of the clock that a crash cut off
}

// TestTheBooksSurviveCrashes kills server and database while cards are charged,
// events arrive twice, late or never, money goes back, meters start and stop,
// and days are settled. In the end every charge of a card is credited once,
// every resource cost its exact integral, and the operator's check finds nothing.
func TestTheBooksSurviveCrashes(t *testing.T) {
	t.Parallel()
	seed := uint64(fromEnv("HOMEPORT_SIM_SEED", int(time.Now().UnixNano()&0xffffff)))
	crashes, transfers := fromEnv("HOMEPORT_SIM_CRASHES", 5), fromEnv("HOMEPORT_SIM_TRANSFERS", 2000)
	t.Logf("HOMEPORT_SIM_SEED=%d HOMEPORT_SIM_CRASHES=%d HOMEPORT_SIM_TRANSFERS=%d", seed, crashes, transfers)
	began := time.Now()
	s := newWorld(t, seed)
	// About a day is settled with each crash, and a day of a resource is a
	// transfer; half of the moves of the clock never reach the server.
	s.buildFleet(max(1, transfers/crashes/10), 20)
	for rounds := 0; s.appCrashes+s.dbCrashes < crashes || s.charges() < transfers; rounds++ {
		if rounds > 10+3*crashes {
			t.Fatalf("%d transfers after %d rounds: the days are not settled", s.charges(), rounds)
		}
		s.round()
		if n := s.appCrashes + s.dbCrashes; n%25 == 0 {
			t.Logf("%s: %d crashes of the server (%d at failpoints), %d of the database, %d transfers, %d orders",
				time.Since(began).Round(time.Second), s.appCrashes, s.atPoints, s.dbCrashes, s.charges(), s.bought.Load())
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	s.quiesce()
	s.audit()
	t.Logf("%s: %d crashes of the server (%d at failpoints), %d of the database, %d moves of the clock cut off",
		time.Since(began).Round(time.Second), s.appCrashes, s.atPoints, s.dbCrashes, s.interruptions)
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	s := &world{t: t, random: rand.New(rand.NewPCG(seed, 1)), granted: map[uuid.UUID]int64{}, meters: make([][]*resource, 3)}
	s.cards = newNetwork(t, seed)
	s.db = &database{t: t, state: folder(t)}
	s.db.start()
	t.Cleanup(s.db.stop)
	s.app = newProcess(t, s.db, s.cards)
	s.app.start("")
	t.Cleanup(s.app.end)
	var err error
	if s.pool, err = pg.Open(context.WithoutCancel(t.Context()), s.db.URL()+"&statement_timeout=0"); err != nil { // the audit reads all there is
		t.Fatal(err)
	}
	t.Cleanup(s.pool.Close)
	business := clock.New()
	s.w = wallet.New(wallet.Deps{Pool: s.pool, Clock: business})
	s.teams = team.New(team.Deps{Pool: s.pool, Clock: business, Hooks: team.Hooks{OpenWallet: s.w.OpenTx}})
	return s
}

// buildFleet makes teams with resources that run for months. One in ten has
// money for a few days only.
func (s *world) buildFleet(teams, each int) {
	s.t.Helper()
	var wait sync.WaitGroup
	for n := range teams {
		random := rand.New(rand.NewPCG(s.random.Uint64(), uint64(n)))
		grant := 100_000 * money.Dollar
		if n%10 == 9 {
			grant = money.USD(1 + random.Int64N(int64(20*money.Dollar)))
		}
		wait.Go(func() { s.buildTeam(random, grant, each) })
		if n%8 == 7 {
			wait.Wait()
		}
	}
	wait.Wait()
	if s.t.Failed() {
		s.t.FailNow()
	}
}

func (s *world) buildTeam(random *rand.Rand, grant money.USD, each int) {
	ctx := s.t.Context()
	info, err := s.teams.UserInfo(ctx, team.Person{ID: id.New(), Email: "fleet@example.com"})
	if err != nil {
		s.t.Error(err)
		return
	}
	teamID := info.Personal.ID
	var made []*resource
	err = pg.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		made = nil
		now, err := s.now(ctx, tx)
		if err != nil {
			return err
		}
		if _, err := s.w.CreditTx(ctx, tx, wallet.Credit{
			TeamID: teamID, Amount: grant, Source: wallet.Promo, Key: "grant:" + teamID.String(), At: now,
		}); err != nil {
			return err
		}
		for range each {
			r := draw(random, teamID)
			if err := s.w.StartTx(ctx, tx, r.start(now)); err != nil {
				return err
			}
			r.from, r.to = now.UnixMicro(), now.UnixMicro()
			made = append(made, r)
		}
		return nil
	})
	if err != nil {
		s.t.Error(err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wallets = append(s.wallets, teamID)
	s.granted[teamID] = int64(grant)
	s.fleet = append(s.fleet, made...)
}

// now is business time, as every node reads it.
func (s *world) now(ctx context.Context, q pg.Querier) (time.Time, error) {
	offset, err := pg.ClockOffset(ctx, q)
	return time.Now().UTC().Truncate(time.Microsecond).Add(offset), err
}

// charges is how many transfers there are, nearly: sequences also count what
// was rolled back.
func (s *world) charges() (n int) {
	s.until("count the transfers", func() error {
		return s.pool.QueryRow(context.Background(), `select count(*) from transfer`).Scan(&n)
	})
	return n
}

// round lets everybody work for a while, kills something among it, and lets
// them go on until what was begun is done.
func (s *world) round() {
	s.t.Helper()
	w := &workers{stop: make(chan struct{})}
	for i := range 3 {
		random := rand.New(rand.NewPCG(s.random.Uint64(), 3))
		w.Go(func() { s.buy(w, random) })
		random = rand.New(rand.NewPCG(s.random.Uint64(), 4))
		w.Go(func() { s.use(w, random, i) })
	}
	w.Go(func() { s.courier(w) })
	ahead := 60 + s.random.Int64N(12*3600)
	if s.random.IntN(6) == 0 {
		ahead = 60 + s.random.Int64N(12*86400) // a backlog of days, of which a crash takes some
	}
	moved := make(chan error, 1)
	w.Go(func() { moved <- s.advance(ahead) })
	time.Sleep(time.Duration(20+s.random.IntN(700)) * time.Millisecond)
	database, failpoint := s.random.IntN(5) < 2, s.failpoint()
	switch {
	case database:
		s.db.kill()
		s.dbCrashes++
	case !s.app.dead():
		s.app.end()
		s.appCrashes++
		s.app.start(failpoint)
	}
	// Whoever died at a failpoint comes back, too, until all is done.
	done := make(chan struct{})
	go func() {
		time.Sleep(50 * time.Millisecond)
		close(w.stop)
		w.Wait()
		close(done)
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-s.app.exited:
			s.appCrashes++
			s.atPoints++
			s.app.start(s.failpoint())
		}
	}
	if <-moved != nil {
		s.interruptions++
	}
}

// failpoint arms about every other life of the server.
func (s *world) failpoint() string {
	points := []string{
		"payment.checkout.committed", "payment.event.claimed", "payment.event.committed",
		"wallet.settle.inserted", "wallet.settle.committed", "meter.exhaust.committed",
	}
	n, at := 1+s.random.IntN(6), s.random.IntN(2*len(points))
	if at >= len(points) {
		return ""
	}
	return fmt.Sprintf("%s:%d", points[at], n)
}

// advance moves business time, and returns when all that came due is done. A
// crash may cut it off: then the server does it by itself.
func (s *world) advance(seconds int64) error {
	_, _, err := request(http.MethodPost, s.app.url+"/dev/clock", fmt.Appendf(nil, `{"advance_seconds":%d}`, seconds), asJSON)
	return err
}

// quiesce lets everything come to rest: late events arrive, what events were
// lost is read from the processor, and the day is settled.
func (s *world) quiesce() {
	s.t.Helper()
	if !s.app.dead() {
		s.app.end()
	}
	s.app.start("")
	for e, ok := s.cards.take(true); ok; e, ok = s.cards.take(true) {
		s.cards.deliver(s.app.url, e)
	}
	// Wall time passes: the sweep reads what has been open for a while.
	_, err := s.pool.Exec(s.t.Context(), `update topup set read_at = opened_at where status = 'open' and read_at is not null`)
	if err != nil {
		s.t.Fatal(err)
	}
	s.app.end()
	s.app.start("") // it reads refunds and disputes when it starts
	now, err := s.now(s.t.Context(), s.pool)
	if err != nil {
		s.t.Fatal(err)
	}
	midnight := now.Truncate(24 * time.Hour).Add(24*time.Hour + time.Minute)
	s.until("move the clock to the next day", func() error { return s.advance(int64(midnight.Sub(now).Seconds())) })
	s.until("agree with the cards", s.checkCards)
}

// A report is what `homeport ledger verify --json` says.
type report struct {
	OK        bool
	Transfers int
	Wallets   int
	Problems  []json.RawMessage
}
