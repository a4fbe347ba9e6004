// Package idem keeps the answers given under an Idempotency-Key for 24 hours
// of wall time, so that a repeated request gets the first one's answer and
// does nothing. It works in the caller's transaction: what was refused or
// rolled back leaves no answer, and the key may be used again. Two requests of
// one key wait for each other on its row.
package idem

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/pg"
)

// Lifetime is how long an answer is kept, in wall time.
const Lifetime = 24 * time.Hour

// MaxKey is the longest key in bytes.
const MaxKey = 255

// Faults of this package.
var (
	// ErrMismatch occurs when a key comes again with another body.
	ErrMismatch = fault.New(fault.Invalid, "idempotency_mismatch", "This Idempotency-Key was used with another request.")
	// ErrKey occurs when a key is too long.
	ErrKey = fault.New(fault.Invalid, "idempotency_key", "The Idempotency-Key must have 1 to 255 characters.")
)

// An Answer is what a request was told, in a form its package understands.
type Answer struct {
	Body []byte
}

// A Request names one request of one caller. The zero Request has no key: it
// is carried out each time.
type Request struct {
	Scope    string // who asks for what: user and route
	Key      string // as the client sent it; "" = none
	BodyHash []byte // SHA-256 of the body
	Wall     time.Time
}

const sqlClaimKey = `
insert into idem_answer (scope, key, body_hash, created_at)
values (@scope, @key, @hash, @wall)
on conflict (scope, key) do nothing`

const sqlLockKey = `
select body_hash, answer, created_at from idem_answer
where scope = $1 and key = $2 for update`

const sqlRenewKey = `
update idem_answer set body_hash = @hash, answer = null, created_at = @wall
where scope = @scope and key = @key`

type storedAnswer struct {
	BodyHash  []byte
	Answer    []byte
	CreatedAt time.Time
}

// BeginTx claims the key for this transaction, waiting for another one that
// holds it. It returns the stored answer, or nil when the request is to be
// carried out; then StoreTx must follow in the same transaction. The faults
// are ErrMismatch and ErrKey.
func BeginTx(ctx context.Context, tx pgx.Tx, scope, key string, bodyHash []byte, wall time.Time) (*Answer, error) {
	if key == "" || len(key) > MaxKey {
		return nil, ErrKey
	}
	args := pgx.NamedArgs{"scope": scope, "key": key, "hash": bodyHash, "wall": wall}
	tag, err := tx.Exec(ctx, sqlClaimKey, args)
	if err != nil {
		return nil, fmt.Errorf("claim an idempotency key: %w", err)
	}
	if tag.RowsAffected() == 1 {
		return nil, nil
	}
	rows, err := tx.Query(ctx, sqlLockKey, scope, key)
	if err != nil {
		return nil, fmt.Errorf("lock an idempotency key: %w", err)
	}
	have, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[storedAnswer])
	if errors.Is(err, pgx.ErrNoRows) { // swept between the two statements
		return BeginTx(ctx, tx, scope, key, bodyHash, wall)
	}
	if err != nil {
		return nil, fmt.Errorf("lock an idempotency key: %w", err)
	}
	switch {
	case !wall.Before(have.CreatedAt.Add(Lifetime)):
		if _, err := tx.Exec(ctx, sqlRenewKey, args); err != nil {
			return nil, fmt.Errorf("renew an idempotency key: %w", err)
		}
		return nil, nil
	case !bytes.Equal(have.BodyHash, bodyHash):
		return nil, ErrMismatch
	case have.Answer == nil: // claimed and committed without an answer
		return nil, nil
	}
	return &Answer{Body: have.Answer}, nil
}

const sqlStoreAnswer = `
update idem_answer set answer = $3 where scope = $1 and key = $2`

// StoreTx keeps the answer to a request that BeginTx let through.
func StoreTx(ctx context.Context, tx pgx.Tx, scope, key string, a Answer) error {
	body := a.Body
	if body == nil {
		body = []byte{}
	}
	tag, err := tx.Exec(ctx, sqlStoreAnswer, scope, key, body)
	if err != nil {
		return fmt.Errorf("store an answer: %w", err)
	}
	if tag.RowsAffected() != 1 {
		return errors.New("store an answer: its key was not claimed")
	}
	return nil
}

// RunTx carries out do once per key: a repeated request gets what the first
// one returned, kept as JSON. Without a key it just runs do.
func RunTx[T any](ctx context.Context, tx pgx.Tx, r Request, do func() (T, error)) (T, error) {
	var none T
	if r.Key == "" {
		return do()
	}
	stored, err := BeginTx(ctx, tx, r.Scope, r.Key, r.BodyHash, r.Wall)
	if err != nil {
		return none, err
	}
	if stored != nil {
		var first T
		if err := json.Unmarshal(stored.Body, &first); err != nil {
			return none, fmt.Errorf("read a stored answer: %w", err)
		}
		return first, nil
	}
	out, err := do()
	if err != nil {
		return none, err
	}
	body, err := json.Marshal(out)
	if err != nil {
		return none, fmt.Errorf("keep an answer: %w", err)
	}
	return out, StoreTx(ctx, tx, r.Scope, r.Key, Answer{Body: body})
}

const sqlSweepAnswers = `delete from idem_answer where created_at <= $1`

// Sweep removes the answers whose day is over.
func Sweep(ctx context.Context, q pg.Querier, wall time.Time) error {
	if _, err := q.Exec(ctx, sqlSweepAnswers, wall.Add(-Lifetime)); err != nil {
		return fmt.Errorf("sweep idempotency keys: %w", err)
	}
	return nil
}
