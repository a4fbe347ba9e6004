package volume

import (
	"context"
	"errors"
	"fmt"
	"io"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/snapshot"
)

const sqlListPacks = `
select id, kind, size_bytes, epoch, committed_seq from volume_pack
where volume_id = $1 and kind <> 'index' and committed_seq is not null
order by id`

// checkIndexes holds the new indexes of a commit against the packs: sizes are
// measured by what indexes say, so none may say less than is stored. objects
// are all of the commit, fresh those that no commit named before.
func (s *Service) checkIndexes(ctx context.Context, v state, key snapshot.Key, objects, fresh []object) error {
	sizes := make(map[snapshot.ID]int64, len(objects))
	note := func(packs []object) {
		for _, o := range packs {
			if o.Kind != agentapi.KindIndex {
				sizes[snapshot.ID(o.ID)] = o.SizeBytes
			}
		}
	}
	note(objects)
	for _, o := range fresh {
		if o.Kind != agentapi.KindIndex {
			continue
		}
		stored, err := s.readObject(ctx, v, o)
		if err != nil {
			return err
		}
		missed := false
		size := func(pack snapshot.ID) (int64, bool) {
			n, ok := sizes[pack]
			missed = missed || !ok
			return n, ok
		}
		err = snapshot.CheckIndex(key, stored, size)
		if err != nil && missed {
			// It lists packs of earlier commits.
			packs, listErr := s.listRows(ctx, sqlListPacks, v.ID)
			if listErr != nil {
				return listErr
			}
			note(packs)
			err = snapshot.CheckIndex(key, stored, size)
		}
		if errors.Is(err, snapshot.ErrDamaged) {
			return ErrCommit.With("An index does not say what is stored.").Because(err)
		}
		if err != nil {
			return fmt.Errorf("check index %s of volume %s: %w", snapshot.ID(o.ID), v.ID, err)
		}
	}
	return nil
}

func (s *Service) readObject(ctx context.Context, v state, o object) ([]byte, error) {
	r, err := s.Store.Get(ctx, o.key(v.ID), 0, -1)
	if err != nil {
		return nil, fmt.Errorf("read an index of volume %s: %w", v.ID, err)
	}
	defer func() { _ = r.Close() }()
	stored, err := io.ReadAll(io.LimitReader(r, o.SizeBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read an index of volume %s: %w", v.ID, err)
	}
	return stored, nil
}
