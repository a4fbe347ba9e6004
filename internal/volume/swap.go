package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/snapshot"
)

const sqlLockGeneration = `
select head_seq, generation from volume where id = $1 and deleted_at is null and purged_at is null for update`

const sqlCommitRepacked = `
update volume_pack set committed_seq = $3
where volume_id = $1 and id = any($2::bytea[]) and epoch = 0 and committed_seq is null`

const sqlCondemnObjects = `
with gone as (
  delete from volume_pack where volume_id = @volume and id = any(@ids::bytea[]) and committed_seq is not null
  returning volume_id, kind, id, size_bytes)
insert into volume_garbage (volume_id, kind, id, size_bytes, committed, generation, condemned_at)
select volume_id, kind, id, size_bytes, true, @generation, @now from gone`

// sqlCondemnProposed takes indexes that were uploaded and not committed: they
// may name what is replaced, and a public tool reads every index that it finds.
// Who uploaded them says hello again before it commits, and writes another.
const sqlCondemnProposed = `
with gone as (
  delete from volume_pack where volume_id = @volume and kind = 'index' and committed_seq is null
  returning volume_id, kind, id, size_bytes)
insert into volume_garbage (volume_id, kind, id, size_bytes, committed, generation, condemned_at)
select volume_id, kind, id, size_bytes, false, @generation, @now from gone
on conflict (volume_id, kind, id) do nothing`

const sqlCondemnSnapshots = `
with gone as (
  delete from volume_snapshot
  where volume_id = @volume and seq = any(@seqs::bigint[]) and seq < @head and published_at is not null
  returning volume_id, snapshot_id)
insert into volume_garbage (volume_id, kind, id, size_bytes, committed, generation, condemned_at)
select volume_id, 'snapshot', snapshot_id, 0, true, @generation, @now from gone`

const sqlRaiseGeneration = `update volume set generation = $2 where id = $1`

// swapTx is the collection itself. It says whether the head still is the one
// that was proved.
func (c *collection) swapTx(ctx context.Context, tx pgx.Tx, head int64, drop []snapshot.ID, made snapshot.Repacked) (bool, error) {
	var seq, generation int64
	err := tx.QueryRow(ctx, sqlLockGeneration, c.volume.ID).Scan(&seq, &generation)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && generation != c.volume.Generation {
		return false, errRaced
	}
	if err != nil || seq != head {
		return false, err
	}
	args := pgx.NamedArgs{
		"volume": c.volume.ID, "generation": generation, "now": c.Clock.Now(), "head": head, "seqs": c.kept.Expired,
	}
	if len(made.Indexes) > 0 {
		args["generation"] = generation + 1
		if err := c.replaceTx(ctx, tx, args, drop, made); err != nil {
			return false, err
		}
	}
	if _, err := tx.Exec(ctx, sqlCondemnSnapshots, args); err != nil {
		return false, fmt.Errorf("let go of versions of volume %s: %w", c.volume.ID, err)
	}
	return true, nil
}

func (c *collection) replaceTx(ctx context.Context, tx pgx.Tx, args pgx.NamedArgs, drop []snapshot.ID, made snapshot.Repacked) error {
	var fresh, old [][]byte
	for _, o := range slices.Concat(made.Packs, made.Indexes) {
		fresh = append(fresh, o.ID[:])
	}
	for _, id := range append(idsOf(c.indexes), drop...) {
		old = append(old, id[:])
	}
	tag, err := tx.Exec(ctx, sqlCommitRepacked, c.volume.ID, fresh, args["head"])
	if err == nil && tag.RowsAffected() != int64(len(fresh)) {
		return errRaced
	}
	if err != nil {
		return fmt.Errorf("commit what was repacked of volume %s: %w", c.volume.ID, err)
	}
	args["ids"] = old
	tag, err = tx.Exec(ctx, sqlCondemnObjects, args)
	if err == nil && tag.RowsAffected() != int64(len(old)) {
		return errRaced
	}
	if err != nil {
		return fmt.Errorf("condemn objects of volume %s: %w", c.volume.ID, err)
	}
	if _, err := tx.Exec(ctx, sqlCondemnProposed, args); err != nil {
		return fmt.Errorf("condemn proposed indexes of volume %s: %w", c.volume.ID, err)
	}
	if _, err := tx.Exec(ctx, sqlRaiseGeneration, c.volume.ID, args["generation"]); err != nil {
		return fmt.Errorf("raise the generation of volume %s: %w", c.volume.ID, err)
	}
	return nil
}
