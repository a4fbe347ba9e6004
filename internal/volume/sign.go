package volume

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/blob"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/snapshot"
)

// grantFor is how long a grant holds, in wall time.
const grantFor = 15 * time.Minute

// Sign grants single moves of objects of the volume that the attachment still
// holds: to write a pack or index under the hash of its content, or to read
// one that is committed or was granted to this attachment. The faults are
// ErrFenced, ErrCommit, ErrObject and ErrQuota.
func (s *Service) Sign(ctx context.Context, a Attachment, in agentapi.Sign) (agentapi.Grants, error) {
	if in.Epoch != a.Epoch {
		return agentapi.Grants{}, ErrFenced
	}
	if len(in.Ops) == 0 || len(in.Ops) > agentapi.MaxSignOps {
		return agentapi.Grants{}, ErrCommit.With("One request has 1 to %d operations.", agentapi.MaxSignOps)
	}
	ops := make([]object, len(in.Ops))
	for i, op := range in.Ops {
		o, err := parseObject(op.Object, op.Put)
		if err != nil {
			return agentapi.Grants{}, err
		}
		o.Epoch = a.Epoch
		ops[i] = o
	}
	err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error { return s.recordTx(ctx, tx, a, in.Ops, ops) })
	if err != nil {
		return agentapi.Grants{}, err
	}
	expires := s.Clock.Wall().Add(grantFor)
	out := agentapi.Grants{Grants: make([]agentapi.Grant, len(ops)), ExpiresAt: expires}
	for i, o := range ops {
		access := blob.Access{Key: o.key(a.VolumeID), Expires: expires}
		if in.Ops[i].Put {
			access.Put, access.SHA256, access.Size = true, o.ID, o.SizeBytes
		}
		g, err := s.Signer.Sign(ctx, access)
		if err != nil {
			return agentapi.Grants{}, fmt.Errorf("sign for volume %s: %w", a.VolumeID, err)
		}
		out.Grants[i] = agentapi.Grant{Method: g.Method, URL: g.URL, Header: flatten(g.Header)}
	}
	return out, nil
}

// flatten keeps the one value that each header of a grant has.
func flatten(header map[string][]string) map[string]string {
	out := make(map[string]string, len(header))
	for name, values := range header {
		if len(values) > 0 {
			out[name] = values[0]
		}
	}
	return out
}

// parseObject reads an object's name. Only one that is to be written needs a
// size. The fault is ErrCommit.
func parseObject(o agentapi.Object, sized bool) (object, error) {
	id, err := snapshot.ParseID(o.ID)
	if err != nil {
		return object{}, ErrCommit.With("The object id %q is not valid.", o.ID)
	}
	if o.Kind != agentapi.KindData && o.Kind != agentapi.KindTree && o.Kind != agentapi.KindIndex {
		return object{}, ErrCommit.With("Objects of this kind cannot be moved.")
	}
	if sized && (o.Size < 1 || o.Size > agentapi.MaxObjectSize) {
		return object{}, ErrCommit.With("An object has 1 to %d bytes.", agentapi.MaxObjectSize)
	}
	return object{ID: id[:], Kind: o.Kind, SizeBytes: o.Size}, nil
}

// recordTx proves the attachment, the quota and the objects of all operations
// while attach and release wait, and records what may be written.
func (s *Service) recordTx(ctx context.Context, tx pgx.Tx, a Attachment, ops []agentapi.Op, objects []object) error {
	v, err := findHeld(ctx, tx, sqlLockState, a)
	if err != nil {
		return err
	}
	var puts, gets []object
	for i, o := range objects {
		if ops[i].Put {
			puts = append(puts, o)
			continue
		}
		gets = append(gets, o)
	}
	if err := s.recordPutsTx(ctx, tx, v, puts, a.Final); err != nil {
		return err
	}
	return checkReadable(ctx, tx, v, gets)
}

const sqlInsertObjects = `
insert into volume_pack (volume_id, id, kind, size_bytes, epoch, created_at)
select @volume, p.id, p.kind, p.size_bytes, @epoch, @now
from unnest(@ids::bytea[], @kinds::text[], @sizes::bigint[]) as p (id, kind, size_bytes)
where not exists (select from volume_garbage g where g.volume_id = @volume and g.kind = p.kind and g.id = p.id)
on conflict (volume_id, id) do update set kind = excluded.kind, size_bytes = excluded.size_bytes, epoch = excluded.epoch
where volume_pack.committed_seq is null`

const sqlSumPending = `
select coalesce(sum(size_bytes) filter (where kind = 'data'), 0)::bigint as data,
  coalesce(sum(size_bytes), 0)::bigint as total
from volume_pack where volume_id = $1 and epoch = $2 and committed_seq is null`

func (s *Service) recordPutsTx(ctx context.Context, tx pgx.Tx, v state, puts []object, final bool) error {
	if len(puts) == 0 {
		return nil
	}
	slices.SortFunc(puts, func(a, b object) int { return bytes.Compare(a.ID, b.ID) }) // the order in which rows lock
	puts = slices.CompactFunc(puts, func(a, b object) bool { return bytes.Equal(a.ID, b.ID) })
	ids, kinds, sizes := make([][]byte, len(puts)), make([]string, len(puts)), make([]int64, len(puts))
	hasData := false
	for i, o := range puts {
		ids[i], kinds[i], sizes[i] = o.ID, string(o.Kind), o.SizeBytes
		hasData = hasData || o.Kind == agentapi.KindData
	}
	_, err := tx.Exec(ctx, sqlInsertObjects, pgx.NamedArgs{
		"volume": v.ID, "epoch": v.Epoch, "now": s.Clock.Now(), "ids": ids, "kinds": kinds, "sizes": sizes,
	})
	if err != nil {
		return fmt.Errorf("record objects of volume %s: %w", v.ID, err)
	}
	var p pending
	if err := tx.QueryRow(ctx, sqlSumPending, v.ID, v.Epoch).Scan(&p.data, &p.total); err != nil {
		return fmt.Errorf("sum the uploads of volume %s: %w", v.ID, err)
	}
	if refusesUpload(v.SizeBytes, p, hasData, final) {
		return ErrQuota
	}
	return nil
}

// pending is what an attachment may upload or did, and did not commit, in bytes.
type pending struct{ data, total int64 }

// refusesUpload is the quota for uploads. Above 105 % of it nothing more of
// file data is taken in the background; trees and indexes still are, since
// they are what a shrunk volume is committed with. A final sync goes on up to
// the hard stop. pending counts what is asked for now.
func refusesUpload(head int64, p pending, hasData, final bool) bool {
	if p.total > HardStopBytes {
		return true
	}
	return hasData && !final && (head > refuseBytes || p.data > refuseBytes)
}

// refusesCommit is the quota for commits: in the background nothing above
// 105 % that does not shrink the volume, in a final sync nothing above the hard
// stop.
func refusesCommit(head, next int64, final bool) bool {
	if final {
		return next > HardStopBytes && next >= head
	}
	return next > refuseBytes && next >= head
}

const sqlFindObjects = `
select id, kind, size_bytes, epoch, committed_seq from volume_pack
where volume_id = $1 and id = any($2::bytea[])`

// findObjects returns the rows of objects by id.
func findObjects(ctx context.Context, q pg.Querier, sql string, v state, objects []object) (map[snapshot.ID]object, error) {
	ids := make([][]byte, len(objects))
	for i, o := range objects {
		ids[i] = o.ID
	}
	rows, err := q.Query(ctx, sql, v.ID, ids)
	if err != nil {
		return nil, fmt.Errorf("find objects of volume %s: %w", v.ID, err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[object])
	if err != nil {
		return nil, fmt.Errorf("find objects of volume %s: %w", v.ID, err)
	}
	byID := make(map[snapshot.ID]object, len(found))
	for _, o := range found {
		byID[snapshot.ID(o.ID)] = o
	}
	return byID, nil
}

const sqlFindReadable = `
select id, kind, size_bytes, epoch, committed_seq from volume_pack
where volume_id = $1 and id = any($2::bytea[])
union all
select id, kind, size_bytes, 0, 0 from volume_garbage
where volume_id = $1 and id = any($2::bytea[]) and committed and kind <> 'snapshot'`

// checkReadable refuses to read what is not this volume's, or was granted to
// another attachment and never committed. What a collection replaced can be
// read while it is there: a restore may have begun before.
func checkReadable(ctx context.Context, tx pgx.Tx, v state, gets []object) error {
	if len(gets) == 0 {
		return nil
	}
	have, err := findObjects(ctx, tx, sqlFindReadable, v, gets)
	if err != nil {
		return err
	}
	for _, o := range gets {
		row, ok := have[snapshot.ID(o.ID)]
		if !ok || row.Kind != o.Kind || row.CommittedSeq == nil && row.Epoch != v.Epoch {
			return ErrObject
		}
	}
	return nil
}
