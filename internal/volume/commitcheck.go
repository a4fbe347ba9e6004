package volume

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/snapshot"
)

// check proves a proposal against the volume and the store, and measures it.
func (s *Service) check(ctx context.Context, v state, p *proposal) error {
	if !v.Restored {
		return ErrNotRestored
	}
	if !v.headIs(p.parent) || v.collected() {
		return ErrParent
	}
	if !v.RepositoryMade {
		return ErrCommit.With("The volume has no repository yet.")
	}
	k, err := s.openKeys(v)
	if err != nil {
		return err
	}
	snap, err := snapshot.DecodeSnapshot(k.master, p.stored)
	if err != nil {
		return ErrCommit.With("The snapshot cannot be read with this volume's key.").Because(err)
	}
	if snap.Tree != p.tree || !snap.Parent.IsZero() && snap.Parent != p.parent {
		return ErrCommit.With("The snapshot says something else than the commit.")
	}
	p.timeNS = snap.Time.UnixNano()
	if v.HeadTimeNS != nil && p.timeNS <= *v.HeadTimeNS {
		return ErrCommit.With("The snapshot is not later than the head.")
	}
	indexes, err := s.checkObjects(ctx, v, k.master, p.objects)
	if err != nil {
		return err
	}
	src := snapshot.StoreReader(s.Store, v.prefix(), indexes)
	p.measured, err = snapshot.Measure(ctx, src, k.master, p.tree, s.measured)
	if errors.Is(err, snapshot.ErrDamaged) {
		return ErrCommit.With("The snapshot's tree is not whole.").Because(err)
	}
	if err != nil {
		return fmt.Errorf("measure volume %s: %w", v.ID, err)
	}
	if refusesCommit(v.SizeBytes, p.measured.Bytes, p.final) {
		return ErrQuota
	}
	return s.checkStored(ctx, v, p)
}

const sqlSumStored = `
select ((select coalesce(sum(size_bytes), 0) from volume_pack where volume_id = $1)
  + (select coalesce(sum(size_bytes), 0) from volume_garbage where volume_id = $1 and condemned_at > $2))::bigint`

// checkStored holds what lies in the store of a volume, whatever of it is
// charged, to StoredMost. Who removes files, or ends, is not held up. The fault
// is ErrQuota.
func (s *Service) checkStored(ctx context.Context, v state, p *proposal) error {
	if p.final || !slices.ContainsFunc(p.objects, func(o object) bool { return o.Kind == agentapi.KindData }) {
		return nil
	}
	var stored int64
	if err := s.Pool.QueryRow(ctx, sqlSumStored, v.ID, s.Clock.Now().Add(-garbageFor)).Scan(&stored); err != nil {
		return fmt.Errorf("sum what is stored of volume %s: %w", v.ID, err)
	}
	if stored > cmp.Or(s.StoredMost, storedMost) {
		return ErrQuota.With("More was written to this volume lately than can be kept. Background sync goes on by itself within a day or two.")
	}
	return nil
}

// collected says that packs were replaced since the agent read the indexes: it
// may build on what is gone, and has to say hello again.
func (v state) collected() bool { return v.SeenGeneration < v.Generation }

func (v state) headIs(id snapshot.ID) bool {
	if v.HeadSnapshot == nil {
		return id.IsZero()
	}
	return bytes.Equal(v.HeadSnapshot, id[:])
}

// checkObjects proves that the new objects were granted to this attachment and
// are in the store, whole, and that the indexes among them tell the truth. It
// returns all indexes that count with them.
func (s *Service) checkObjects(ctx context.Context, v state, key snapshot.Key, objects []object) ([]snapshot.ID, error) {
	have, err := findObjects(ctx, s.Pool, sqlFindObjects, v, objects)
	if err != nil {
		return nil, err
	}
	var fresh []object
	for _, o := range objects {
		row, ok := have[snapshot.ID(o.ID)]
		if !ok || row.Kind != o.Kind || row.SizeBytes != o.SizeBytes || row.CommittedSeq == nil && row.Epoch != v.Epoch {
			return nil, ErrCommit.With("The commit names an object that was not granted.")
		}
		if row.CommittedSeq == nil {
			fresh = append(fresh, o)
		}
	}
	sizes, err := s.stat(ctx, v.ID, fresh)
	if err != nil {
		return nil, err
	}
	committed, err := s.listRows(ctx, sqlListIndexes, v.ID)
	if err != nil {
		return nil, err
	}
	indexes := make([]snapshot.ID, 0, len(committed)+1)
	for _, o := range committed {
		indexes = append(indexes, snapshot.ID(o.ID))
	}
	for i, o := range fresh {
		if sizes[i] != o.SizeBytes {
			return nil, ErrCommit.With("An object of the commit is not in the store.")
		}
		if o.Kind == agentapi.KindIndex {
			indexes = append(indexes, snapshot.ID(o.ID))
		}
	}
	if s.Unchecked != nil && s.Unchecked() {
		if err := s.readBack(ctx, v.ID, fresh); err != nil {
			return nil, err
		}
	}
	return indexes, s.checkIndexes(ctx, v, key, objects, fresh)
}
