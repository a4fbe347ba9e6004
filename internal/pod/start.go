package pod

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/pg"
)

// New returns the service. Call Prepare before its first use.
func New(d Deps) *Service {
	d.Limits = d.Limits.withDefaults()
	return &Service{Deps: d, node: id.New(), orders: newWaiters()}
}

const sqlDrawInstallation = `
insert into installation (only_row, env4, created_at) values (true, $1, $2)
on conflict (only_row) do nothing`

const sqlReadInstallation = `select env4 from installation`

const sqlFillPorts = `
insert into ssh_port (port, pod_id, freed_wall_at)
select port, null, null from generate_series($1::integer, $2::integer) as port
on conflict (port) do nothing`

// Prepare draws the installation's mark once, fills the range of SSH ports and
// says that this node lives.
func (s *Service) Prepare(ctx context.Context) error {
	s.started = s.Clock.Wall()
	s.ears.open(s.started, s.Limits.HeartbeatBlind)
	err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sqlDrawInstallation, drawEnv4(), s.started); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, sqlReadInstallation).Scan(&s.env4); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, sqlFillPorts, s.Limits.PortFirst, s.Limits.PortLast)
		return err
	})
	if err != nil {
		return fmt.Errorf("prepare pods: %w", err)
	}
	return s.Beat(ctx)
}

func drawEnv4() string {
	return hex.EncodeToString(id.Bytes(2))
}

const sqlBeatNode = `
insert into node (id, seen_wall_at) values ($1, $2)
on conflict (id) do update set seen_wall_at = excluded.seen_wall_at`

const sqlForgetNodes = `delete from node where seen_wall_at < $1`

// nodeTTL is how long after its last beat a node counts as alive: the calls it
// had under way are then ambiguous.
const nodeTTL = 6 * time.Second

// Beat says that this node lives; call it every second or two.
func (s *Service) Beat(ctx context.Context) error {
	wall := s.Clock.Wall()
	if _, err := s.Pool.Exec(ctx, sqlBeatNode, s.node, wall); err != nil {
		return fmt.Errorf("node beat: %w", err)
	}
	s.ears.beat(wall)
	if _, err := s.Pool.Exec(ctx, sqlForgetNodes, wall.Add(-24*time.Hour)); err != nil {
		return fmt.Errorf("forget nodes: %w", err)
	}
	return nil
}

const sqlNodeSeen = `select seen_wall_at from node where id = $1`

// nodeAlive reports whether the node that made a call may still be waiting for
// its answer.
func (s *Service) nodeAlive(ctx context.Context, q pg.Querier, in *Instance) (bool, error) {
	if in.NodeID == s.node {
		return true, nil
	}
	var seen time.Time
	err := q.QueryRow(ctx, sqlNodeSeen, in.NodeID).Scan(&seen)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil // so long dead that it is forgotten
	}
	if err != nil {
		return false, fmt.Errorf("node of instance %s: %w", in.ID, err)
	}
	return s.Clock.Wall().Sub(seen) < nodeTTL, nil
}
