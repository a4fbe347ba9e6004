package pg

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	txAttempts  = 6
	txBaseDelay = 5 * time.Millisecond
)

// InTx runs fn in a transaction and commits when fn returns nil. After a
// serialization failure, a deadlock or an AgainAfter it runs fn again, up to five
// times with growing pauses, so fn must have no effect outside tx. The error is fn's own,
// unchanged, or that of begin or commit.
func InTx(ctx context.Context, pool *pgxpool.Pool, fn func(tx pgx.Tx) error) error {
	var backend uint32
	attempt := 1
	run := func(tx pgx.Tx) error {
		backend = tx.Conn().PgConn().PID()
		if attempt == 1 {
			tx = firstTry{tx}
		}
		return fn(tx)
	}
	for ; ; attempt++ {
		err := pgx.BeginFunc(ctx, pool, run)
		if err == nil || attempt == txAttempts || !retryable(err) {
			return err
		}
		if err := sleep(ctx, txDelay(attempt, backend)); err != nil {
			return err
		}
	}
}

// firstTry is the transaction of InTx's first run.
type firstTry struct{ pgx.Tx }

// FirstTry says whether tx is that of InTx's first run of its function: an error
// that AgainAfter marks, or a deadlock, makes it run again. A step that is quick
// because it leaves out what is rarely needed may be taken in this run only.
func FirstTry(tx pgx.Tx) bool {
	_, first := tx.(firstTry)
	return first
}

// againError is an error after which the transaction is tried again.
type againError struct{ error }

func (e againError) Unwrap() error { return e.error }

// AgainAfter makes InTx run its function again when err is the violation of one
// unique constraint or index: for rows that were looked for in vain and are
// there by now, because somebody else has committed them. Any other error, and
// nil, stays as it is.
func AgainAfter(err error, constraint string) error {
	const uniqueViolation = "23505"
	var pe *pgconn.PgError
	if errors.As(err, &pe) && pe.Code == uniqueViolation && pe.ConstraintName == constraint {
		return againError{err}
	}
	return err
}

// retryable says whether the database rolled back only because of who else was
// running.
func retryable(err error) bool {
	const serializationFailure, deadlockDetected = "40001", "40P01"
	var pe *pgconn.PgError
	if errors.As(err, &pe) && (pe.Code == serializationFailure || pe.Code == deadlockDetected) {
		return true
	}
	var again againError
	return errors.As(err, &again)
}

// txDelay doubles with each attempt, between half and the whole of its range.
// The server process's number spreads it: two transactions that collided never
// share one.
func txDelay(attempt int, backend uint32) time.Duration {
	span := txBaseDelay << (attempt - 1)
	spread := (backend*2654435761 + uint32(attempt)*40503) % 1024
	return span/2 + span/2*time.Duration(spread)/1024
}

// sleep waits for d, or returns the context's error when that ends first.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
