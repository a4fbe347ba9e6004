package app

import (
	"context"
	"testing"
	"time"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/pg/pgtest"
)

// A node whose clock jumped takes nothing away before its time: what is gone for
// good goes by the database's clock, or not at all.
func TestWhatGoesForGoodGoesByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	jump := time.Duration(0)
	a := &App{pool: pgtest.New(t), clock: clock.From(func() time.Time { return time.Now().Add(jump) })}
	var saw time.Time
	pass := a.timely(func(context.Context) error {
		saw = a.clock.Now()
		return nil
	})
	for _, jump = range []time.Duration{0, 30 * 24 * time.Hour, -time.Hour} {
		if err := pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		server, err := pg.ServerTime(t.Context(), a.pool)
		if err != nil {
			t.Fatal(err)
		}
		if off := server.Sub(saw).Abs(); off > time.Minute {
			t.Errorf("after a jump of %s the pass was %s off", jump, off)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	saw = time.Time{}
	if err := pass(ctx); err == nil || !saw.IsZero() {
		t.Errorf("without the database it ran: %v", err)
	}
}
