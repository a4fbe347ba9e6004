package queue_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/pg/pgtest"
	"homeport.dev/homeport/internal/queue"
)

// Kinds of which some fail are listed, the worst first, with the last error in
// one line; those that wait, run or are done are not.
func TestFailingJobsAreToldByKind(t *testing.T) {
	t.Parallel()
	pool, now := pgtest.New(t), time.Date(2030, 1, 2, 0, 0, 0, 0, time.UTC)
	add := func(kind, state string, ago time.Duration, text string) {
		t.Helper()
		at := now.Add(-ago)
		var finalized *time.Time
		if state == "discarded" || state == "completed" {
			finalized = &at
		}
		errs := []map[string]any{}
		if text != "" {
			errs = append(errs, map[string]any{"at": at, "attempt": 1, "error": "an older one"}, map[string]any{"at": at, "attempt": 2, "error": text})
		}
		_, err := pool.Exec(t.Context(), `insert into river_job (state, attempt, max_attempts, attempted_at, finalized_at, scheduled_at, args, errors, kind)
			values ($1::river_job_state, 1, 5, $2, $3, $4, '{}', $5::jsonb[], $6)`, state, at, finalized, now.Add(ago), errs, kind)
		if err != nil {
			t.Fatal(err)
		}
	}
	add("mail", "retryable", 3*time.Minute, "older")
	add("mail", "retryable", time.Minute, "no route\n\tto host "+strings.Repeat("x", 400))
	add("mail", "completed", time.Minute, "")
	add("pod", "discarded", 30*time.Hour, "boom")
	add("pod", "discarded", time.Hour, "bang")
	add("fine", "available", time.Minute, "")
	add("fine", "completed", time.Minute, "it failed before")
	got, err := queue.Failing(t.Context(), pool, now)
	if err != nil {
		t.Fatal(err)
	}
	at := func(d time.Duration) *time.Time { when := now.Add(d); return &when }
	for i := range got {
		for _, when := range []**time.Time{&got[i].LastAt, &got[i].NextAt} {
			if *when != nil {
				utc := (*when).UTC()
				*when = &utc
			}
		}
	}
	want := []job.Failing{
		{Kind: "pod", GivenUp: 2, GivenUpDay: 1, LastError: "bang", LastAt: at(-time.Hour)},
		{Kind: "mail", Retrying: 2, LastError: "no route to host " + strings.Repeat("x", 282) + "…", LastAt: at(-time.Minute), NextAt: at(time.Minute)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
