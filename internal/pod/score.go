package pod

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/offer"
	"homeport.dev/homeport/internal/pg"
)

// An Outcome is how a machine did.
type Outcome string

// The outcomes. The last word counts: a machine that was ready may be lost.
const (
	OutcomeReady   Outcome = "ready"
	OutcomeSlow    Outcome = "slow"     // its agent came later than its cloud says it may
	OutcomeFailed  Outcome = "failed"   // it was given up during set-up
	OutcomeBadHost Outcome = "bad_host" // it is not what was sold
	OutcomeLost    Outcome = "lost"
)

// scoreFor is how long an outcome counts, and slowAfter when an agent is late
// at a cloud that does not say how long its machines take.
const (
	scoreFor  = 7 * 24 * time.Hour
	slowAfter = 10 * time.Minute
)

// turned records how the machine did.
func (in *Instance) turned(o Outcome, wall time.Time) { in.Outcome, in.OutcomeWallAt = o, &wall }

// late reports whether the first word of an instance's agent comes late.
func (s *Service) late(in *Instance, wall time.Time) bool {
	allowed := slowAfter
	if a := s.Adapters[in.Provider]; a != nil {
		if d := a.Capabilities().BootTimeout; d > 0 {
			allowed = d
		}
	}
	return wall.Sub(in.CreatedWallAt) > allowed
}

// A Score is how the machines of one cloud did in the last seven days.
type Score struct {
	Provider                            string // key of Deps.Adapters
	Ready, Slow, Failed, BadHosts, Lost int
}

// Points are from 0, no good machine, to 100, no bad one. A slow one is half a
// good one, and two good ones that nobody has seen keep a single bad one from
// saying too much.
func (s Score) Points() int {
	good := 2*s.Ready + s.Slow + 4
	return 100 * good / (2*(s.Ready+s.Slow+s.Failed+s.BadHosts+s.Lost) + 4)
}

const sqlListScores = `
select provider, count(*) filter (where outcome = 'ready') as ready, count(*) filter (where outcome = 'slow') as slow,
       count(*) filter (where outcome = 'failed') as failed, count(*) filter (where outcome = 'bad_host') as bad_hosts,
       count(*) filter (where outcome = 'lost') as lost
  from instance
 where outcome <> '' and outcome_wall_at > $1
 group by provider
 order by provider`

// Scores tells how the machines of each cloud did; a cloud without one is left out.
func (s *Service) Scores(ctx context.Context) ([]Score, error) { return s.scores(ctx, s.Pool) }

func (s *Service) scores(ctx context.Context, q pg.Querier) ([]Score, error) {
	rows, _ := q.Query(ctx, sqlListScores, s.Clock.Wall().Add(-scoreFor))
	list, err := pgx.CollectRows(rows, pgx.RowToStructByName[Score])
	if err != nil {
		return nil, fmt.Errorf("read the clouds' scores: %w", err)
	}
	return list, nil
}

// rankTx orders offers of one price by the score of their cloud: the price, which
// users see, is never outweighed.
func (s *Service) rankTx(ctx context.Context, tx pgx.Tx, quotes []offer.Quote) error {
	if len(quotes) < 2 {
		return nil
	}
	list, err := s.scores(ctx, tx)
	if err != nil {
		return err
	}
	points := func(q offer.Quote) int {
		i := slices.IndexFunc(list, func(sc Score) bool { return sc.Provider == q.Adapter })
		if i < 0 {
			return Score{}.Points()
		}
		return list[i].Points()
	}
	slices.SortStableFunc(quotes, func(a, b offer.Quote) int {
		return cmp.Or(cmp.Compare(a.Rate, b.Rate), cmp.Compare(points(b), points(a)))
	})
	return nil
}
