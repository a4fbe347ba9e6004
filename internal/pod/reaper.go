package pod

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/offer"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/provider"
)

// Reap looks through every provider account for machines with this
// installation's mark that no open instance owns (server rule 15). Seen twice,
// far enough apart, they are ended; other names are never touched. None is ended
// soon after a start, nor after a restore of the database until Arm.
func (s *Service) Reap(ctx context.Context) error {
	restored, err := s.RestoredAt(ctx)
	if err != nil {
		return err
	}
	if restored != nil {
		s.Logger.ErrorContext(ctx, "the database was restored: no machine is ended as an orphan, no volume is purged and no saved card is charged until the operator says 'homeport reaper arm'",
			"restored", *restored)
		return nil
	}
	if s.Clock.Wall().Sub(s.started) < s.Limits.ReaperArms {
		return nil
	}
	for name, adapter := range s.Adapters {
		if err := s.reapAccount(ctx, name, adapter); err != nil {
			s.Logger.WarnContext(ctx, "provider account was not looked through", "provider", name, "err", err)
		}
	}
	return nil
}

// thisCluster is the history of the database that is asked. A restore goes on
// in another cluster (a dump), or in a new timeline of the same (a backup with
// its log; the promotion of a standby, which may lack the last rows too).
const thisCluster = `(select c.system_identifier || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8) from pg_control_system() c)`

const sqlReadCluster = `select cluster = ` + thisCluster + ` as known, restored_wall_at from installation`

const sqlSeeCluster = `
with seen as materialized (select ` + thisCluster + ` as cluster)
update installation i set cluster = seen.cluster,
  restored_wall_at = case when i.cluster in ('', seen.cluster) then i.restored_wall_at else $1 end
from seen returning i.restored_wall_at`

// RestoredAt says since when the database is a restored one that the operator has
// not confirmed; nil = it is not. What was done after the backup is not in it:
// machines were made whose pods may live, and cards were charged.
func (s *Service) RestoredAt(ctx context.Context) (*time.Time, error) {
	var known bool
	var at *time.Time
	err := s.Pool.QueryRow(ctx, sqlReadCluster).Scan(&known, &at)
	if err == nil && !known {
		err = s.Pool.QueryRow(ctx, sqlSeeCluster, s.Clock.Wall()).Scan(&at)
	}
	if err != nil {
		return nil, fmt.Errorf("look whether the database was restored: %w", err)
	}
	return at, nil
}

const sqlArmReaper = `
with before as (select restored_wall_at from installation for update)
update installation i set restored_wall_at = null from before returning before.restored_wall_at`

// Arm is the operator's word that what was done after the backup of a restored
// database has been looked through. It returns since when that was due, nil if it was not.
func (s *Service) Arm(ctx context.Context) (*time.Time, error) {
	var at *time.Time
	err := s.Pool.QueryRow(ctx, sqlArmReaper).Scan(&at)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil // no node has started yet
	}
	if err != nil {
		return nil, fmt.Errorf("arm the reaper: %w", err)
	}
	return at, nil
}

const sqlOpenNames = `select name from instance where provider = $1 and state <> 'gone'`

const sqlNoteOrphan = `
insert into orphan (provider, ref, name, first_seen_wall_at) values ($1, $2, $3, $4)
on conflict (provider, ref) do update set name = excluded.name
returning first_seen_wall_at`

const sqlForgetOrphans = `delete from orphan where provider = $1 and not (ref = any($2))`

// reapCall bounds one call of the reaper. Each has its own time: a list that
// comes slowly must not keep a machine alive.
const reapCall = 30 * time.Second

func (s *Service) reapAccount(ctx context.Context, name string, adapter provider.Adapter) error {
	call, cancel := context.WithTimeout(ctx, reapCall)
	machines, err := adapter.Find(call, "hp-"+s.env4+"-")
	cancel()
	s.noteCall(ctx, name, offer.CallOther, err)
	if err != nil {
		return err
	}
	rows, _ := s.Pool.Query(ctx, sqlOpenNames, name)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("open instances at %s: %w", name, err)
	}
	open := map[string]bool{}
	for _, n := range names {
		open[n] = true
	}
	due, err := s.noteOrphans(ctx, name, machines, open)
	if err != nil {
		return err
	}
	if len(due) > 3 || len(due)*5 > max(len(machines), 5) {
		s.Logger.ErrorContext(ctx, "too many orphans at once: none is ended", "provider", name, "orphans", len(due))
		return nil
	}
	for _, m := range due {
		s.Logger.WarnContext(ctx, "ending a machine that no pod owns", "provider", name, "machine", m.Name)
		call, cancel := context.WithTimeout(ctx, reapCall)
		err := adapter.Terminate(call, m.Ref)
		cancel()
		if err != nil {
			s.Logger.WarnContext(ctx, "a machine that no pod owns is not ended yet", "provider", name, "machine", m.Name, "err", err)
		}
	}
	return nil
}

// noteOrphans remembers the unowned machines and returns those seen for long enough.
func (s *Service) noteOrphans(ctx context.Context, name string, machines []provider.Machine, open map[string]bool) ([]provider.Machine, error) {
	var due []provider.Machine
	refs := []string{}
	wall := s.Clock.Wall()
	err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		due, refs = nil, refs[:0]
		for _, m := range machines {
			if open[m.Name] || m.State == provider.Gone || m.State == provider.Terminating {
				continue
			}
			refs = append(refs, m.Ref)
			var first time.Time
			if err := tx.QueryRow(ctx, sqlNoteOrphan, name, m.Ref, m.Name, wall).Scan(&first); err != nil {
				return err
			}
			if wall.Sub(first) >= s.Limits.OrphanTwice {
				due = append(due, m)
			}
		}
		_, err := tx.Exec(ctx, sqlForgetOrphans, name, refs)
		return err
	})
	return due, err
}
