package sim_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/wallet"
)

// A resource is something metered, with what its owner knows of it: instants
// are business microseconds.
type resource struct {
	id       uuid.UUID
	team     uuid.UUID
	kind     wallet.Kind
	rate     money.Rate
	from, to int64 // it was started between these
	rerates  int
	stopped  int64 // by then at the latest; 0: never
}

func draw(random *rand.Rand, teamID uuid.UUID) *resource {
	r := &resource{id: id.New(), team: teamID, kind: wallet.PodRuntime, rate: money.Rate(200 + random.Int64N(20_000))}
	if random.IntN(2) == 0 {
		r.kind = wallet.VolumeStorage
	}
	return r
}

func (r *resource) start(at time.Time) wallet.Start {
	return wallet.Start{TeamID: r.team, ResourceID: r.id, Kind: r.kind, Rate: r.rate, At: at, Description: "simulated"}
}

// use starts, changes and stops resources of any team, as another node's
// requests do, each until it worked: a transaction whose answer was lost is
// sent again.
func (s *world) use(w *workers, random *rand.Rand, worker int) {
	for !w.stopped() {
		mine := s.meters[worker]
		var open []*resource
		for _, r := range mine {
			if r.stopped == 0 {
				open = append(open, r)
			}
		}
		switch what := random.IntN(3); {
		case what == 0 && len(open) < 60 || len(open) == 0:
			s.mu.Lock()
			r := draw(random, s.wallets[random.IntN(len(s.wallets))])
			s.mu.Unlock()
			s.begin(r)
			s.meters[worker] = append(mine, r)
		case what == 1:
			s.change(random, open[random.IntN(len(open))])
		default:
			s.finish(open[random.IntN(len(open))])
		}
	}
}

func (s *world) begin(r *resource) {
	s.meter("start", func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		if r.from == 0 {
			r.from = now.UnixMicro()
		}
		// What began, and ended with the money before the answer came, began.
		until, err := s.w.MeteredUntil(ctx, tx, []uuid.UUID{r.id})
		if _, ended := until[r.id]; err != nil || ended {
			return err
		}
		return s.w.StartTx(ctx, tx, r.start(now))
	})
	r.to = s.reading()
}

func (s *world) change(random *rand.Rand, r *resource) {
	rate := money.Rate(200 + random.Int64N(20_000))
	r.rerates++
	s.meter("rerate", func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		err := s.w.RerateTx(ctx, tx, r.id, rate, now)
		if errors.Is(err, wallet.ErrNotMetered) {
			return nil // the money ended
		}
		return err
	})
}

func (s *world) finish(r *resource) {
	s.meter("stop", func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		return s.w.StopTx(ctx, tx, r.id, now)
	})
	r.stopped = s.reading()
}

// reading is business time, after something that worked.
func (s *world) reading() (us int64) {
	s.until("read the clock", func() error {
		now, err := s.now(context.Background(), s.pool)
		us = now.UnixMicro()
		return err
	})
	return us
}

func (s *world) meter(what string, do func(ctx context.Context, tx pgx.Tx, now time.Time) error) {
	s.until(what, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		return pg.InTx(ctx, s.pool, func(tx pgx.Tx) error {
			now, err := s.now(ctx, tx)
			if err != nil {
				return err
			}
			return do(ctx, tx, now)
		})
	})
}
