package payment_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/payment"
)

// An ender is a team whose subscription's end is told of.
type ender struct {
	*found
	mu   sync.Mutex
	told []time.Time
}

func newEnder(t *testing.T) *ender {
	e := &ender{found: newDesk(t).pro("2", active("sub_1", 2))}
	e.pay.OnEnding = func(_ context.Context, _ pgx.Tx, end payment.Ending) error {
		e.mu.Lock()
		defer e.mu.Unlock()
		if end.TeamID != e.team {
			t.Errorf("told team %s", end.TeamID)
		}
		e.told = append(e.told, end.At)
		return nil
	}
	return e
}

// ends has the bank's subscription end with its month, or go on.
func (e *ender) ends(ends bool) {
	e.t.Helper()
	e.status("active", func(s *payment.Subscription) { s.CancelsAtPeriodEnd = ends })
}

func (e *ender) follow() {
	e.t.Helper()
	if err := e.pay.FollowEndings(e.t.Context()); err != nil {
		e.t.Error(err)
	}
}

func (e *ender) wantTold(when string, want ...time.Time) {
	e.t.Helper()
	if diff := cmp.Diff(want, e.told); diff != "" {
		e.t.Errorf("%s the team was told (-want +got):\n%s", when, diff)
	}
}

// A team is told once, 72 hours before the plan ends that it ended; of another
// end, once more.
func TestAnEndedPlanIsToldOnceBeforeItEnds(t *testing.T) {
	t.Parallel()
	e := newEnder(t)
	april, may := noon.AddDate(0, 1, 0), noon.AddDate(0, 2, 0)
	e.ends(true)
	e.clock.Advance(april.Sub(noon) - 72*time.Hour - time.Microsecond)
	e.follow()
	e.wantTold("before the last 72 hours")
	e.clock.Advance(time.Microsecond)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(e.follow)
	}
	wg.Wait()
	e.wantTold("at 72 hours", april)
	e.ends(false)
	e.ends(true)
	e.follow()
	e.wantTold("after it was taken back and ended again", april)
	e.ends(false)
	e.clock.Advance(73 * time.Hour)
	e.status("active", next)
	e.ends(true)
	e.clock.Advance(may.Sub(e.clock.Now()) - time.Hour)
	e.follow()
	e.wantTold("before another end", april, may)
	e.clock.Advance(2 * time.Hour)
	e.status("canceled")
	e.follow()
	e.wantTold("after the end", april, may)
}

// Who took the end back where no event told of it, or never ended anything, is
// told nothing; a bank that is down tells later.
func TestAPlanThatGoesOnIsNotToldToEnd(t *testing.T) {
	t.Parallel()
	e := newEnder(t)
	april := noon.AddDate(0, 1, 0)
	e.clock.Advance(april.Sub(noon) - time.Hour)
	e.follow()
	e.wantTold("of a plan that nobody ended")
	e.ends(true)
	e.bank.change("sub_1", func(s *payment.Subscription) { s.CancelsAtPeriodEnd = false })
	e.follow()
	e.wantTold("of an end that was taken back unseen")
	e.ends(true)
	e.bank.down = true
	if err := e.pay.FollowEndings(t.Context()); err == nil {
		t.Error("a bank that is down went unnoticed")
	}
	e.wantTold("while the bank is down")
	e.bank.down = false
	e.follow()
	e.wantTold("when the bank is back", april)
}
