package volume

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/wallet"
)

const sqlListVolumes = `
select id, team_id, name, size_bytes, pod_id is not null as currently_used, pod_id,
  deleted_at is not null as deleted, frozen_at is not null as frozen, created_at, created_by,
  deleted_at, purge_at, last_commit_at, epoch, head_snapshot, head_seq,
  team_key, team_key and key_sealed is null as locked
from volume where team_id = $1 and deleted_at is null
order by created_at desc, id`

// List returns the team's volumes that are not deleted, newest first.
func (s *Service) List(ctx context.Context, scope team.Scope) ([]Volume, error) {
	return collect(ctx, s.Pool, sqlListVolumes, scope.TeamID())
}

const sqlListDeleted = `
select id, team_id, name, size_bytes, pod_id is not null as currently_used, pod_id,
  deleted_at is not null as deleted, frozen_at is not null as frozen, created_at, created_by,
  deleted_at, purge_at, last_commit_at, epoch, head_snapshot, head_seq,
  team_key, team_key and key_sealed is null as locked
from volume where team_id = $1 and deleted_at is not null and purge_at > $2
order by deleted_at desc, id`

// ListDeleted returns the team's trash, the last deleted first.
func (s *Service) ListDeleted(ctx context.Context, scope team.Scope) ([]Volume, error) {
	return collect(ctx, s.Pool, sqlListDeleted, scope.TeamID(), s.Clock.Now())
}

func collect(ctx context.Context, q pg.Querier, sql string, args ...any) ([]Volume, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("list volumes: %w", err)
	}
	volumes, err := pgx.CollectRows(rows, pgx.RowToStructByName[Volume])
	if err != nil {
		return nil, fmt.Errorf("list volumes: %w", err)
	}
	return volumes, nil
}

const sqlFindVolume = `
select id, team_id, name, size_bytes, pod_id is not null as currently_used, pod_id,
  deleted_at is not null as deleted, frozen_at is not null as frozen, created_at, created_by,
  deleted_at, purge_at, last_commit_at, epoch, head_snapshot, head_seq,
  team_key, team_key and key_sealed is null as locked
from volume where id = $1 and team_id = $2`

// Find returns one volume of the team, also from the trash. The fault is
// ErrNotFound.
func (s *Service) Find(ctx context.Context, scope team.Scope, volumeID uuid.UUID) (Volume, error) {
	return find(ctx, s.Pool, sqlFindVolume, scope, volumeID)
}

// FindTx returns one volume of the team that is not deleted, without locking
// it. The fault is ErrNotFound.
func (s *Service) FindTx(ctx context.Context, tx pgx.Tx, scope team.Scope, volumeID uuid.UUID) (Volume, error) {
	v, err := find(ctx, tx, sqlFindVolume, scope, volumeID)
	if err == nil && v.Deleted {
		return Volume{}, ErrNotFound
	}
	return v, err
}

func find(ctx context.Context, q pg.Querier, sql string, scope team.Scope, volumeID uuid.UUID) (Volume, error) {
	rows, err := q.Query(ctx, sql, volumeID, scope.TeamID())
	if err != nil {
		return Volume{}, fmt.Errorf("find volume %s: %w", volumeID, err)
	}
	v, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Volume])
	if errors.Is(err, pgx.ErrNoRows) {
		return Volume{}, ErrNotFound
	}
	if err != nil {
		return Volume{}, fmt.Errorf("find volume %s: %w", volumeID, err)
	}
	return v, nil
}

const sqlFindSize = `select name, size_bytes from volume where id = $1`

// Notice is the QuotaNotice of a volume, for background work such as the
// message of the day of its pod. The fault is ErrNotFound.
func (s *Service) Notice(ctx context.Context, volumeID uuid.UUID) (string, error) {
	var v Volume
	err := s.Pool.QueryRow(ctx, sqlFindSize, volumeID).Scan(&v.Name, &v.SizeBytes)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", ErrNotFound
	}
	if err != nil {
		return "", fmt.Errorf("read the size of volume %s: %w", volumeID, err)
	}
	return v.QuotaNotice(), nil
}

// Segments lists what a volume cost per hour, and from when to when, also of a
// deleted one. The fault is ErrNotFound.
func (s *Service) Segments(ctx context.Context, scope team.Scope, volumeID uuid.UUID) ([]wallet.Segment, error) {
	if _, err := s.Find(ctx, scope, volumeID); err != nil {
		return nil, err
	}
	return s.Wallet.Segments(ctx, scope, volumeID)
}
