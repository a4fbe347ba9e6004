// Package queue carries jobs with River. It is the only place that knows
// River: domain packages add jobs through job.Queue, and this package calls
// their methods. A job may run twice, late or never; nothing here is the truth.
package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"homeport.dev/homeport/internal/job"
)

// concurrency is how many jobs one node works on at once: they mostly wait for
// providers.
const concurrency = 64

// A Queue adds jobs and, once started, works on them.
type Queue struct {
	client  *river.Client[pgx.Tx]
	workers *river.Workers
}

// New returns a queue over the database. Handle every kind before Start.
func New(pool *pgxpool.Pool, logger *slog.Logger) (*Queue, error) {
	workers := river.NewWorkers()
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Logger:                      slog.New(quiet{logger.Handler()}),
		Queues:                      map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: concurrency}},
		Workers:                     workers,
		FetchCooldown:               20 * time.Millisecond,
		FetchPollInterval:           time.Second,
		JobTimeout:                  2 * time.Minute,
		MaxAttempts:                 5,
		CompletedJobRetentionPeriod: time.Hour,
	})
	if err != nil {
		return nil, fmt.Errorf("job queue: %w", err)
	}
	return &Queue{client: client, workers: workers}, nil
}

// Handle says what does the jobs of one kind.
func Handle[T job.Args](q *Queue, run func(ctx context.Context, args T) error) {
	river.AddWorker(q.workers, &worker[T]{run: run})
}

type worker[T job.Args] struct {
	river.WorkerDefaults[T]
	run func(ctx context.Context, args T) error
}

// Timeout bounds one job; 0 = by the default.
func (w *worker[T]) Timeout(j *river.Job[T]) time.Duration {
	if slow, ok := any(j.Args).(job.Slow); ok {
		return slow.Timeout()
	}
	return 0
}

// Work runs one job.
func (w *worker[T]) Work(ctx context.Context, j *river.Job[T]) error { return w.run(ctx, j.Args) }

// AddTx adds a job inside the caller's transaction.
func (q *Queue) AddTx(ctx context.Context, tx pgx.Tx, args job.Args, opts job.Options) error {
	insert := &river.InsertOpts{ScheduledAt: opts.NotBefore, MaxAttempts: opts.MaxAttempts}
	if opts.Unique {
		insert.UniqueOpts = river.UniqueOpts{ByArgs: true, ByState: []rivertype.JobState{
			rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning,
			rivertype.JobStateScheduled, rivertype.JobStateRetryable,
		}}
	}
	if _, err := q.client.InsertTx(ctx, tx, args, insert); err != nil {
		return fmt.Errorf("add job %s: %w", args.Kind(), err)
	}
	return nil
}

// Start begins to work on jobs, until Stop.
func (q *Queue) Start(ctx context.Context) error {
	if err := q.client.Start(ctx); err != nil {
		return fmt.Errorf("start the job queue: %w", err)
	}
	return nil
}

// Stop lets running jobs end; when ctx ends first, their contexts are cancelled.
func (q *Queue) Stop(ctx context.Context) error {
	err := q.client.Stop(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		hard, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		err = q.client.StopAndCancel(hard)
	}
	if err != nil {
		return fmt.Errorf("stop the job queue: %w", err)
	}
	return nil
}

// quiet keeps River's own chatter out of the log: warnings and errors stay.
type quiet struct{ slog.Handler }

// Enabled lets warnings and errors through.
func (h quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}
