package queue_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/pg/pgtest"
	"homeport.dev/homeport/internal/queue"
)

// A job that hangs is ended, and one that has much to do is not: a day of the
// payment processor's book takes longer than any call.
func TestAJobMayRunAsLongAsItSays(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	q, err := queue.New(pool, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	type allowed struct {
		kind string
		left time.Duration
	}
	ran := make(chan allowed, 2)
	note := func(ctx context.Context, kind string) error {
		end, _ := ctx.Deadline()
		ran <- allowed{kind, time.Until(end)}
		return nil
	}
	queue.Handle(q, func(ctx context.Context, j payment.ReconcileJob) error { return note(ctx, j.Kind()) })
	queue.Handle(q, func(ctx context.Context, j payment.ChargeJob) error { return note(ctx, j.Kind()) })
	if err := q.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := q.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	for _, j := range []job.Args{payment.ReconcileJob{}, payment.ChargeJob{}} {
		if err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error { return q.AddTx(t.Context(), tx, j, job.Options{}) }); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]time.Duration{payment.ReconcileJob{}.Kind(): 30 * time.Minute, payment.ChargeJob{}.Kind(): 2 * time.Minute}
	for range want {
		select {
		case got := <-ran:
			if most := want[got.kind]; got.left > most || got.left < most-time.Minute {
				t.Errorf("%s may run for %s more, want up to %s", got.kind, got.left, most)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("the jobs did not run")
		}
	}
}
