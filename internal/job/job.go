// Package job is the contract between the domain and its job queue. A job is a
// nudge: it carries ids, may run twice, late or never, and a sweep finds what
// it would have found. The row is the truth.
package job

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Args names one piece of work. Its JSON form carries ids only. Kind is the
// stable name under which the queue finds the worker.
type Args interface{ Kind() string }

// Slow is work that may take longer than the queue allows by default: 2 minutes.
type Slow interface {
	Args
	Timeout() time.Duration
}

// Options say when and how a job may run; the zero value is "now, once".
type Options struct {
	NotBefore   time.Time // wall time; zero = at once
	MaxAttempts int       // 0 = the queue's default
	Unique      bool      // skip when an equal job (kind and JSON) still waits
}

// A Queue takes jobs inside the caller's transaction, so that a job exists
// exactly when the change it follows is committed.
type Queue interface {
	AddTx(ctx context.Context, tx pgx.Tx, args Args, opts Options) error
}

// A Recorder is a Queue for tests: it keeps what it was given.
type Recorder struct {
	mu   sync.Mutex
	jobs []Args
}

// AddTx records the job.
func (r *Recorder) AddTx(_ context.Context, _ pgx.Tx, args Args, _ Options) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.jobs = append(r.jobs, args)
	return nil
}

// Take returns the recorded jobs and forgets them.
func (r *Recorder) Take() []Args {
	r.mu.Lock()
	defer r.mu.Unlock()
	jobs := r.jobs
	r.jobs = nil
	return jobs
}

// A Failing is one kind of job of which some fail. Instants are wall time.
type Failing struct {
	Kind       string
	Retrying   int64 // failed, and will be tried again
	GivenUp    int64 // failed for the last time, in the last seven days
	GivenUpDay int64 // of those, in the last 24 hours
	LastError  string
	LastAt     *time.Time // the last try
	NextAt     *time.Time // the first of the next tries
}
