package pod

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/team"
)

// List returns the team's pods, newest first: all that live, and those that
// ended in the last 15 minutes of wall time (server rule 11). Of each it reads
// what users see: no offer, no keys and no wall times.
func (s *Service) List(ctx context.Context, scope team.Scope) ([]Pod, error) {
	rows, _ := s.Pool.Query(ctx, sqlListPods, scope.TeamID(), s.listedSince())
	return collectPods(rows, scope)
}

// ListClaimed is List for a claim, which it proves in the same trip.
func (s *Service) ListClaimed(ctx context.Context, c team.Claim) (list []Pod, err error) {
	err = c.Read(ctx, s.Pool, sqlListPods, []any{c.TeamID(), s.listedSince()}, func(scope team.Scope, rows pgx.Rows) error {
		list, err = collectPods(rows, scope)
		return err
	})
	return list, err
}

// listedSince is when a pod that is still listed may have ended.
func (s *Service) listedSince() time.Time { return s.Clock.Wall().Add(-s.Limits.ListedForEnd) }

func collectPods(rows pgx.Rows, scope team.Scope) ([]Pod, error) {
	list, err := pgx.CollectRows(rows, pgx.RowToStructByNameLax[Pod])
	if err != nil {
		return nil, fmt.Errorf("list pods of team %s: %w", scope.TeamID(), err)
	}
	return list, nil
}

// Find returns one pod of the team, also after its end. The fault is ErrNotFound.
func (s *Service) Find(ctx context.Context, scope team.Scope, podID uuid.UUID) (*Pod, error) {
	p, err := findPod(ctx, s.Pool, podID)
	if err != nil {
		return nil, err
	}
	if p.TeamID != scope.TeamID() {
		return nil, ErrNotFound
	}
	return p, nil
}

// MeteredUntil is the end of what is charged for the pod, or nil while its
// meter runs or never ran.
func (p *Pod) MeteredUntil() *time.Time { return p.StoppedAt }

// CountByStatus counts live pods, for the metrics.
func (s *Service) CountByStatus(ctx context.Context) (map[Status]int, error) {
	rows, _ := s.Pool.Query(ctx, sqlCountByStatus)
	counts := map[Status]int{}
	var status Status
	var n int
	_, err := pgx.ForEachRow(rows, []any{&status, &n}, func() error {
		counts[status] = n
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("count pods: %w", err)
	}
	return counts, nil
}

const sqlCountByStatus = `
select status, count(*) from pod where status <> 'deleted' group by status`
