package pod

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/provider"
)

const sqlCurrentInstance = `
select id, pod_id, attempt, name, provider, offer, state, node_id, token_hash, ref, host, ssh_port, reason,
       created_wall_at, state_wall_at, agent_seen_wall_at, probed_wall_at, gone_seen_wall_at, tries, next_wall_at,
       outcome, outcome_wall_at, check_asked, checked_wall_at
  from instance
 where pod_id = $1
 order by attempt desc
 limit 1`

const sqlFindInstance = `
select id, pod_id, attempt, name, provider, offer, state, node_id, token_hash, ref, host, ssh_port, reason,
       created_wall_at, state_wall_at, agent_seen_wall_at, probed_wall_at, gone_seen_wall_at, tries, next_wall_at,
       outcome, outcome_wall_at, check_asked, checked_wall_at
  from instance
 where id = $1`

const sqlLockInstance = `
select id, pod_id, attempt, name, provider, offer, state, node_id, token_hash, ref, host, ssh_port, reason,
       created_wall_at, state_wall_at, agent_seen_wall_at, probed_wall_at, gone_seen_wall_at, tries, next_wall_at,
       outcome, outcome_wall_at, check_asked, checked_wall_at
  from instance
 where id = $1
   for update`

const sqlInstanceOfAgent = `
select id, pod_id, attempt, name, provider, offer, state, node_id, token_hash, ref, host, ssh_port, reason,
       created_wall_at, state_wall_at, agent_seen_wall_at, probed_wall_at, gone_seen_wall_at, tries, next_wall_at,
       outcome, outcome_wall_at, check_asked, checked_wall_at
  from instance
 where token_hash = $1`

const sqlInstancesOfPod = `
select id, pod_id, attempt, name, provider, offer, state, node_id, token_hash, ref, host, ssh_port, reason,
       created_wall_at, state_wall_at, agent_seen_wall_at, probed_wall_at, gone_seen_wall_at, tries, next_wall_at,
       outcome, outcome_wall_at, check_asked, checked_wall_at
  from instance
 where pod_id = $1
 order by attempt`

// currentInstance returns the pod's latest instance, or nil when none was tried.
func currentInstance(ctx context.Context, q pg.Querier, podID uuid.UUID) (*Instance, error) {
	rows, _ := q.Query(ctx, sqlCurrentInstance, podID)
	return oneInstance(rows, podID)
}

func oneInstance(rows pgx.Rows, of uuid.UUID) (*Instance, error) {
	in, err := pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByName[Instance])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("instance of %s: %w", of, err)
	}
	return in, nil
}

func instancesOfPod(ctx context.Context, q pg.Querier, podID uuid.UUID) ([]*Instance, error) {
	rows, _ := q.Query(ctx, sqlInstancesOfPod, podID)
	list, err := pgx.CollectRows(rows, pgx.RowToAddrOfStructByName[Instance])
	if err != nil {
		return nil, fmt.Errorf("instances of pod %s: %w", podID, err)
	}
	return list, nil
}

const sqlInsertInstance = `
insert into instance (id, pod_id, attempt, name, provider, offer, state, node_id, token_hash, ref, host,
       ssh_port, reason, created_wall_at, state_wall_at, tries)
values (@id, @pod, @attempt, @name, @provider, @offer, 'intent', @node, @token_hash, '', '', @port, '',
       @wall, @wall, 0)`

// intendTx commits to a name before any call is made (server rule 7), and
// returns the instance with its one-time token.
func (s *Service) intendTx(ctx context.Context, tx pgx.Tx, p *Pod, wall time.Time) (*Instance, string, error) {
	token := id.Token()
	in := &Instance{
		ID: id.New(), PodID: p.ID, Attempt: p.Attempts, Provider: p.Adapter, Offer: p.Offer,
		Name:  fmt.Sprintf("hp-%s-%s-%d", s.env4, id.First(p.ID), p.Attempts),
		State: Intent, NodeID: s.node, TokenHash: id.Hash(token), SSHPort: p.SSHPort, CreatedWallAt: wall, StateWallAt: wall,
	}
	_, err := tx.Exec(ctx, sqlInsertInstance, pgx.NamedArgs{
		"id": in.ID, "pod": in.PodID, "attempt": in.Attempt, "name": in.Name, "provider": in.Provider,
		"offer": in.Offer, "node": in.NodeID, "token_hash": in.TokenHash, "port": in.SSHPort, "wall": wall,
	})
	if err != nil {
		return nil, "", fmt.Errorf("intend instance %s: %w", in.Name, err)
	}
	return in, token, nil
}

// at records where the machine is, as far as its cloud can say.
func (in *Instance) at(m provider.Machine) {
	if m.Host != "" && m.SSHPort != 0 {
		in.Host, in.SSHPort = m.Host, m.SSHPort
	}
}

const sqlSaveInstance = `
update instance
   set state = @state, ref = @ref, host = @host, ssh_port = @port, reason = @reason, state_wall_at = @state_wall,
       agent_seen_wall_at = @seen, probed_wall_at = @probed, gone_seen_wall_at = @gone_seen, tries = @tries,
       next_wall_at = @next_wall, outcome = @outcome, outcome_wall_at = @outcome_wall
 where id = @id`

func saveInstance(ctx context.Context, tx pg.Querier, in *Instance) error {
	_, err := tx.Exec(ctx, sqlSaveInstance, pgx.NamedArgs{
		"id": in.ID, "state": in.State, "ref": in.Ref, "host": in.Host, "port": in.SSHPort, "reason": in.Reason,
		"state_wall": in.StateWallAt, "seen": in.AgentSeenWallAt, "probed": in.ProbedWallAt,
		"gone_seen": in.GoneSeenWallAt, "tries": in.Tries, "next_wall": in.NextWallAt,
		"outcome": in.Outcome, "outcome_wall": in.OutcomeWallAt,
	})
	if err != nil {
		return fmt.Errorf("save instance %s: %w", in.Name, err)
	}
	return nil
}

// changeInstance applies fn to an instance under its pod's and its own lock.
func (s *Service) changeInstance(ctx context.Context, in *Instance, fn func(tx pgx.Tx, p *Pod, in *Instance) error) error {
	return pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		p, err := lockPod(ctx, tx, in.PodID)
		if err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, sqlLockInstance, in.ID)
		locked, err := oneInstance(rows, in.ID)
		if err != nil {
			return err
		}
		if locked == nil {
			return fmt.Errorf("instance %s is not there any more", in.Name)
		}
		return fn(tx, p, locked)
	})
}

// set moves the instance to a state.
func (in *Instance) set(state InstanceState, reason string, wall time.Time) {
	in.State, in.Reason, in.StateWallAt, in.Tries = state, reason, wall, 0
	in.NextWallAt = nil
	if state == Terminating {
		in.NextWallAt = &wall
	}
}

// dropInstancesTx sends every open instance of a pod to its end.
func (s *Service) dropInstancesTx(ctx context.Context, tx pgx.Tx, podID uuid.UUID, reason string) error {
	list, err := instancesOfPod(ctx, tx, podID)
	if err != nil {
		return err
	}
	for _, in := range list {
		if in.State == Gone || in.State == Terminating {
			continue
		}
		if err := s.dropTx(ctx, tx, in, reason); err != nil {
			return err
		}
	}
	return nil
}

// dropTx sends one instance to its end: from now on its token opens nothing.
func (s *Service) dropTx(ctx context.Context, tx pgx.Tx, in *Instance, reason string) error {
	in.set(Terminating, reason, s.Clock.Wall())
	if err := saveInstance(ctx, tx, in); err != nil {
		return err
	}
	return s.Jobs.AddTx(ctx, tx, TerminateJob{InstanceID: in.ID}, job.Options{})
}
