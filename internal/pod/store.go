package pod

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/pg"
)

const sqlFindPod = `
select id, team_id, created_by, volume_id, volume_epoch, ssh_key_id, status, status_reason, status_detail,
       progress, offer, adapter, provider, country, gpu_type, gpu_count, rate_usd_micro_per_hour,
       max_rate_usd_micro_per_hour, list_rate_usd_micro_per_hour, ssh_port, ssh_host, host_key_sealed,
       host_key_fingerprint, probe_key_sealed, probe_key_line, attempts, created_at, ready_at,
       delete_requested_at, stopped_at, synced_at, ended_at, status_wall_at, progress_wall_at,
       restored_wall_at, final_wall_at, ended_wall_at, next_wall_at, ended_by_user_early,
       final_paid_from_at, moved_wall_at, auto_relaunch, relaunches, relaunch_of, relaunched_as, relaunch_until_wall_at
  from pod
 where id = $1`

const sqlLockPod = `
select id, team_id, created_by, volume_id, volume_epoch, ssh_key_id, status, status_reason, status_detail,
       progress, offer, adapter, provider, country, gpu_type, gpu_count, rate_usd_micro_per_hour,
       max_rate_usd_micro_per_hour, list_rate_usd_micro_per_hour, ssh_port, ssh_host, host_key_sealed,
       host_key_fingerprint, probe_key_sealed, probe_key_line, attempts, created_at, ready_at,
       delete_requested_at, stopped_at, synced_at, ended_at, status_wall_at, progress_wall_at,
       restored_wall_at, final_wall_at, ended_wall_at, next_wall_at, ended_by_user_early,
       final_paid_from_at, moved_wall_at, auto_relaunch, relaunches, relaunch_of, relaunched_as, relaunch_until_wall_at
  from pod
 where id = $1
   for update`

// The page asks for its team's pods every few seconds: what it does not show is
// not read.
const sqlListPods = `
select id, team_id, created_by, volume_id, ssh_key_id, status, status_reason, status_detail, progress,
       provider, country, gpu_type, gpu_count, rate_usd_micro_per_hour, ssh_port, ssh_host, host_key_fingerprint,
       created_at, ready_at, delete_requested_at, stopped_at, synced_at, ended_at, auto_relaunch, relaunch_of,
       relaunched_as
  from pod
 where team_id = $1 and (status <> 'deleted' or ended_wall_at > $2)
 order by created_at desc, id`

func one(rows pgx.Rows, what string, of uuid.UUID) (*Pod, error) {
	p, err := pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByName[Pod])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, ErrNotFound.Because(err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s pod %s: %w", what, of, err)
	}
	return p, nil
}

func findPod(ctx context.Context, q pg.Querier, podID uuid.UUID) (*Pod, error) {
	rows, _ := q.Query(ctx, sqlFindPod, podID)
	return one(rows, "find", podID)
}

func lockPod(ctx context.Context, tx pgx.Tx, podID uuid.UUID) (*Pod, error) {
	rows, _ := tx.Query(ctx, sqlLockPod, podID)
	return one(rows, "lock", podID)
}

const sqlInsertPod = `
insert into pod (id, team_id, created_by, volume_id, volume_epoch, ssh_key_id, status, status_reason,
       status_detail, progress, offer, adapter, provider, country, gpu_type, gpu_count, rate_usd_micro_per_hour,
       max_rate_usd_micro_per_hour, list_rate_usd_micro_per_hour, ssh_port, ssh_host, host_key_sealed,
       host_key_fingerprint, probe_key_sealed, probe_key_line, attempts, created_at, status_wall_at,
       progress_wall_at, next_wall_at, ended_by_user_early, auto_relaunch, relaunches, relaunch_of)
values (@id, @team, @user, @volume, @epoch, @key, 'pending', '', '', 0, @offer, @adapter, @provider, @country,
       @gpu_type, @gpu_count, @rate, @max_rate, @list_rate, @port, @host, @host_key, @fingerprint,
       @probe_key, @probe_line, @attempts, @now, @wall, @wall, @wall, false, @auto_relaunch, @relaunches, @relaunch_of)`

func insertPod(ctx context.Context, tx pgx.Tx, p *Pod) error {
	_, err := tx.Exec(ctx, sqlInsertPod, pgx.NamedArgs{
		"id": p.ID, "team": p.TeamID, "user": p.CreatedBy, "volume": p.VolumeID, "epoch": p.VolumeEpoch,
		"key": p.SSHKeyID, "offer": p.Offer, "adapter": p.Adapter, "provider": p.Provider, "country": p.Country,
		"gpu_type": p.GPUType, "gpu_count": p.GPUCount, "rate": p.Rate, "max_rate": p.MaxRate,
		"list_rate": p.ListRate, "port": p.SSHPort, "host": p.SSHHost, "host_key": p.HostKeySealed,
		"fingerprint": p.HostKeyFingerprint, "probe_key": p.ProbeKeySealed, "probe_line": p.ProbeKeyLine,
		"attempts": p.Attempts, "now": p.CreatedAt, "wall": p.StatusWallAt,
		"auto_relaunch": p.AutoRelaunch, "relaunches": p.Relaunches, "relaunch_of": p.RelaunchOf,
	})
	if err != nil {
		return fmt.Errorf("insert pod %s: %w", p.ID, err)
	}
	return nil
}

const sqlSavePod = `
update pod
   set status = @status, status_reason = @reason, status_detail = @detail, progress = @progress,
       offer = @offer, adapter = @adapter, provider = @provider, country = @country, attempts = @attempts, ssh_port = @port,
       rate_usd_micro_per_hour = @rate, list_rate_usd_micro_per_hour = @list_rate,
       ready_at = @ready, delete_requested_at = @delete_requested, stopped_at = @stopped,
       synced_at = @synced, ended_at = @ended, status_wall_at = @status_wall,
       progress_wall_at = @progress_wall, restored_wall_at = @restored_wall, final_wall_at = @final_wall,
       ended_wall_at = @ended_wall, next_wall_at = @next_wall, ended_by_user_early = @early,
       final_paid_from_at = @final_paid_from, auto_relaunch = @auto_relaunch, relaunched_as = @relaunched_as,
       relaunch_until_wall_at = @relaunch_until
 where id = @id`

// savePod writes back what changes in a pod's life. The caller holds its lock.
func savePod(ctx context.Context, tx pgx.Tx, p *Pod) error {
	_, err := tx.Exec(ctx, sqlSavePod, pgx.NamedArgs{
		"id": p.ID, "status": p.Status, "reason": p.StatusReason, "detail": p.StatusDetail,
		"progress": p.Progress, "offer": p.Offer, "adapter": p.Adapter, "provider": p.Provider, "country": p.Country,
		"attempts": p.Attempts, "port": p.SSHPort, "rate": p.Rate, "list_rate": p.ListRate, "ready": p.ReadyAt,
		"delete_requested": p.DeleteRequestedAt, "stopped": p.StoppedAt, "synced": p.SyncedAt,
		"ended": p.EndedAt, "status_wall": p.StatusWallAt, "progress_wall": p.ProgressWallAt,
		"restored_wall": p.RestoredWallAt, "final_wall": p.FinalWallAt, "ended_wall": p.EndedWallAt,
		"next_wall": p.NextWallAt, "early": p.EndedByUserEarly, "final_paid_from": p.FinalPaidFromAt,
		"auto_relaunch": p.AutoRelaunch, "relaunched_as": p.RelaunchedAs, "relaunch_until": p.RelaunchUntilWallAt,
	})
	if err != nil {
		return fmt.Errorf("save pod %s: %w", p.ID, err)
	}
	return nil
}

const sqlDuePods = `
select id from pod where next_wall_at <= $1 order by next_wall_at limit $2`

func duePods(ctx context.Context, q pg.Querier, wall time.Time, limit int) ([]uuid.UUID, error) {
	rows, _ := q.Query(ctx, sqlDuePods, wall, limit)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return nil, fmt.Errorf("due pods: %w", err)
	}
	return ids, nil
}

const sqlTakePort = `
select port from ssh_port
 where pod_id is null
 order by freed_wall_at nulls first, port
 limit 1
   for update skip locked`

const sqlGivePort = `update ssh_port set pod_id = $2, freed_wall_at = null, freed_by = null where port = $1`

const sqlFreePort = `update ssh_port set pod_id = null, freed_wall_at = $2, freed_by = $1 where pod_id = $1`

// takePort gives the pod the free port that waited longest (server rule 12).
func takePort(ctx context.Context, tx pgx.Tx, podID uuid.UUID) (int, error) {
	var port int
	err := tx.QueryRow(ctx, sqlTakePort).Scan(&port)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, ErrNoPort.Because(err)
	}
	if err != nil {
		return 0, fmt.Errorf("take an SSH port for pod %s: %w", podID, err)
	}
	if _, err := tx.Exec(ctx, sqlGivePort, port, podID); err != nil {
		return 0, fmt.Errorf("give SSH port %d to pod %s: %w", port, podID, err)
	}
	return port, nil
}

const sqlTakePortOf = `
update ssh_port set pod_id = $1, freed_wall_at = null, freed_by = null
 where port = (select port from ssh_port where freed_by = $2 and pod_id is null order by freed_wall_at desc limit 1 for update)
returning port`

// takePortOf gives the pod the port that another one had, or any that is free.
func takePortOf(ctx context.Context, tx pgx.Tx, podID, before uuid.UUID) (int, error) {
	var port int
	err := tx.QueryRow(ctx, sqlTakePortOf, podID, before).Scan(&port)
	if errors.Is(err, pgx.ErrNoRows) {
		return takePort(ctx, tx, podID)
	}
	if err != nil {
		return 0, fmt.Errorf("give the SSH port of pod %s to pod %s: %w", before, podID, err)
	}
	return port, nil
}

const sqlOwnPort = `select port from ssh_port where pod_id = $1`

// ownPort returns the port that the pod holds of our range.
func ownPort(ctx context.Context, tx pgx.Tx, podID uuid.UUID) (int, error) {
	var port int
	if err := tx.QueryRow(ctx, sqlOwnPort, podID).Scan(&port); err != nil {
		return 0, fmt.Errorf("read the SSH port of pod %s: %w", podID, err)
	}
	return port, nil
}

// freePort puts the pod's port at the end of the queue.
func freePort(ctx context.Context, tx pgx.Tx, podID uuid.UUID, wall time.Time) error {
	if _, err := tx.Exec(ctx, sqlFreePort, podID, wall); err != nil {
		return fmt.Errorf("free the SSH port of pod %s: %w", podID, err)
	}
	return nil
}
