package volume

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/blob"
	"homeport.dev/homeport/internal/pg"
)

// A Place is where the volumes' objects lie, and what the store there was found
// to enforce.
type Place struct {
	Name     string `db:"place"`
	Features json.RawMessage
	ProbedAt time.Time
}

const sqlFindPlace = `select place, features, probed_at from volume_store`

// FindPlace returns the place that was last in use; ok is false before the
// first one.
func FindPlace(ctx context.Context, q pg.Querier) (p Place, ok bool, err error) {
	err = q.QueryRow(ctx, sqlFindPlace).Scan(&p.Name, &p.Features, &p.ProbedAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return Place{}, false, nil
	}
	if err != nil {
		return Place{}, false, fmt.Errorf("find where the volumes lie: %w", err)
	}
	return p, true, nil
}

const sqlKeepPlace = `
insert into volume_store (one, place, features, probed_at) values (true, $1, $2, $3)
on conflict (one) do update set place = excluded.place, features = excluded.features, probed_at = excluded.probed_at`

// KeepPlace records the place that is in use from now on.
func KeepPlace(ctx context.Context, q pg.Querier, p Place) error {
	if _, err := q.Exec(ctx, sqlKeepPlace, p.Name, p.Features, p.ProbedAt); err != nil {
		return fmt.Errorf("keep where the volumes lie: %w", err)
	}
	return nil
}

// ErrElsewhere occurs when a store does not hold the volumes that there are.
var ErrElsewhere = errors.New("the volumes are not in this store")

// sqlListNewestMade picks the volumes by which a store is recognised.
const sqlListNewestMade = `
select id from volume where repository_made and purged_at is null
order by created_at desc limit 3`

// CheckPlace holds that a store which was not in use so far has the volumes. The
// error is ErrElsewhere.
func CheckPlace(ctx context.Context, q pg.Querier, store blob.Store) error {
	rows, err := q.Query(ctx, sqlListNewestMade)
	if err != nil {
		return fmt.Errorf("list the newest volumes: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return fmt.Errorf("list the newest volumes: %w", err)
	}
	for _, id := range ids {
		_, err := store.Stat(ctx, prefixOf(id)+"/config")
		if errors.Is(err, blob.ErrNotFound) {
			return fmt.Errorf("%w: volume %s is not there", ErrElsewhere, id)
		}
		if err != nil {
			return fmt.Errorf("look for volume %s: %w", id, err)
		}
	}
	return nil
}
