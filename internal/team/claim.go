package team

import (
	"context"
	"fmt"
	"runtime"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/semaphore"
)

// ReadsAtOnce is how many claimed reads of this process are with the database at
// once. None of them waits for a lock, so more of them only take turns on the
// cores, and the unluckiest waits longest: with 64 clients the p99 was three
// times the median, and is less than twice it. A database a millisecond away
// still answers more than a node's cores can ask.
var ReadsAtOnce = max(4, 2*runtime.GOMAXPROCS(0))

var reads = semaphore.NewWeighted(int64(ReadsAtOnce))

// A Claim is what a person says: that they may act for a team. It is worth
// nothing until Read has proven it.
type Claim struct {
	person Person
	team   uuid.UUID
	need   Right
}

// ClaimOf is the claim of a person to a right in a team.
func ClaimOf(p Person, teamID uuid.UUID, need Right) Claim {
	return Claim{person: p, team: teamID, need: need}
}

// TeamID is the team that is claimed.
func (c Claim) TeamID() uuid.UUID { return c.team }

// Read proves a claim as Authorize does, and runs a query in the same trip to
// the database: most of the cost of a short read is that of its trip. The query
// must write nothing and read nothing but the claimed team's, since it runs
// whatever comes of the claim; read gets its rows only when that is proven. The
// faults are those of Authorize.
func (c Claim) Read(ctx context.Context, pool *pgxpool.Pool, sql string, args []any, read func(Scope, pgx.Rows) error) error {
	if err := reads.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("authorize for team %s: %w", c.team, err)
	}
	defer reads.Release(1)
	var scope Scope
	batch := &pgx.Batch{}
	batch.Queue(sqlFindMembership, c.team, c.person.ID).Query(func(rows pgx.Rows) (err error) {
		scope, err = c.prove(rows)
		return err
	})
	batch.Queue(sql, args...).Query(func(rows pgx.Rows) error { return read(scope, rows) })
	return pool.SendBatch(ctx, batch).Close()
}

// prove makes the scope of the membership that was found.
func (c Claim) prove(found pgx.Rows) (Scope, error) {
	defer found.Close()
	s := Scope{team: c.team, person: c.person, need: c.need}
	there := found.Next()
	if there {
		if err := found.Scan((*string)(&s.role), (*string)(&s.plan), &s.personal); err != nil {
			return Scope{}, fmt.Errorf("authorize for team %s: %w", c.team, err)
		}
	}
	found.Close()
	switch {
	case found.Err() != nil:
		return Scope{}, fmt.Errorf("authorize for team %s: %w", c.team, found.Err())
	case !there:
		return Scope{}, ErrNotFound
	case !s.role.allows(c.need):
		return Scope{}, ErrForbidden
	}
	return s, nil
}
