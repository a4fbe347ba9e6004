package pod

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/provider"
)

// Reap looks through every provider account for machines with this
// installation's mark that no open instance owns (server rule 15). Seen twice,
// far enough apart, they are ended; other names are never touched.
func (s *Service) Reap(ctx context.Context) error {
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

const sqlOpenNames = `select name from instance where provider = $1 and state <> 'gone'`

const sqlNoteOrphan = `
insert into orphan (provider, ref, name, first_seen_wall_at) values ($1, $2, $3, $4)
on conflict (provider, ref) do update set name = excluded.name
returning first_seen_wall_at`

const sqlForgetOrphans = `delete from orphan where provider = $1 and not (ref = any($2))`

func (s *Service) reapAccount(ctx context.Context, name string, adapter provider.Adapter) error {
	call, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	machines, err := adapter.Find(call, "hp-"+s.env4+"-")
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
		if err := adapter.Terminate(call, m.Ref); err != nil {
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
