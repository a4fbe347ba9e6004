package auth

import (
	"context"
	"fmt"
	"time"
)

// sweepBatch bounds what one statement of a sweep deletes; the next sweep goes on.
const sweepBatch = 5000

const sqlSweepRequests = `
	delete from auth_request where seq in (
		select seq from auth_request where requested_at < $1 order by requested_at limit $2)`

const sqlSweepLinks = `
	delete from auth_link where id in (
		select id from auth_link where expires_at < $1 order by expires_at limit $2)`

const sqlSweepSessions = `
	delete from auth_session where id in (
		select id from auth_session where expires_at < $1 order by expires_at limit $2)`

// Sweep forgets what no rule needs any more: requests after two hours, links
// an hour after they expire, sessions a day after their lifetime. It also
// rotates the signing keys. To be called every few minutes, on any node.
func (s *Service) Sweep(ctx context.Context) error {
	now := s.Clock.Wall()
	for _, step := range []struct {
		what, sql string
		before    time.Time
	}{
		{"requests", sqlSweepRequests, now.Add(-2 * windowAddress)},
		{"links", sqlSweepLinks, now.Add(-time.Hour)},
		{"sessions", sqlSweepSessions, now.Add(-24 * time.Hour)},
	} {
		if _, err := s.Pool.Exec(ctx, step.sql, step.before, sweepBatch); err != nil {
			return fmt.Errorf("sweep %s: %w", step.what, err)
		}
	}
	return s.RotateKeys(ctx)
}
