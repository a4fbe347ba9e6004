package pg

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// The epoch counts the changes of holder, so that a former one can be told
// from a later one of the same name.
const sqlTakeLease = `
insert into lease (name, holder, epoch, expires_at)
values (@name, @holder, 1, @until)
on conflict (name) do update set
  holder = excluded.holder,
  epoch = lease.epoch + case when lease.holder = excluded.holder and lease.expires_at > @now then 0 else 1 end,
  expires_at = excluded.expires_at
where lease.holder = excluded.holder or lease.expires_at <= @now
returning epoch`

// TryLease takes or renews the named lease for ttl from now, which is wall
// time, and says whether holder has it. It never waits for a holder to end. A
// holder must stop what the lease allows before it runs out.
func TryLease(ctx context.Context, q Querier, name, holder string, ttl time.Duration, now time.Time) (bool, error) {
	var epoch int64
	err := q.QueryRow(ctx, sqlTakeLease, pgx.NamedArgs{
		"name": name, "holder": holder, "until": now.Add(ttl), "now": now,
	}).Scan(&epoch)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("take the lease %s: %w", name, err)
	}
	return true, nil
}

// A released lease is one that ran out long ago; the row keeps its epoch.
const sqlReleaseLease = `
update lease set expires_at = to_timestamp(0) where name = $1 and holder = $2`

// ReleaseLease gives the lease back early. One that holder does not have is
// left alone.
func ReleaseLease(ctx context.Context, q Querier, name, holder string) error {
	if _, err := q.Exec(ctx, sqlReleaseLease, name, holder); err != nil {
		return fmt.Errorf("release the lease %s: %w", name, err)
	}
	return nil
}
