package masterkey

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/blob/dir"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/team/teamtest"
	"homeport.dev/homeport/internal/volume"
)

// A rotation seals the keys of unlocked volumes anew, and leaves locked ones
// alone: there is nothing of theirs to seal. Both open afterwards, with the old
// key gone.
func TestARotationLeavesTeamKeysAlone(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.deps.Columns = slices.Concat(h.deps.Columns, volume.Sealed())
	store, err := dir.New(t.TempDir(), []byte("0123456789abcdef"), h.deps.Clock.Wall)
	h.must(err)
	serve := func(r *Ring) *volume.Service {
		return volume.New(volume.Deps{Pool: h.pool, Clock: h.deps.Clock, Logger: h.deps.Logger, Box: r.Box(), Store: store, Signer: store})
	}
	scope := teamtest.Admin(t, h.pool, team.Pro)
	node := h.open()
	h.must(node.Follow(t.Context()))
	volumes := serve(node)
	// grant attaches a volume, and returns what its pod is given.
	grant := func(s *volume.Service, v volume.Volume) (g agentapi.VolumeGrant) {
		t.Helper()
		var a volume.Attachment
		h.must(pg.InTx(t.Context(), h.pool, func(tx pgx.Tx) (err error) {
			a, err = s.AttachTx(t.Context(), tx, scope, v.ID, id.New(), h.deps.Clock.Now())
			return err
		}))
		g, err := s.Grant(t.Context(), a, false)
		h.must(err)
		h.must(pg.InTx(t.Context(), h.pool, func(tx pgx.Tx) error {
			return s.ReleaseTx(t.Context(), tx, v.ID, a.PodID, h.deps.Clock.Now())
		}))
		return g
	}
	openKey, lockedKey := "hpk_"+id.Token(), "hpk_"+id.Token()
	open, err := volumes.CreateLocked(t.Context(), scope, "open", openKey, idem.Request{})
	h.must(err)
	locked, err := volumes.CreateLocked(t.Context(), scope, "locked", lockedKey, idem.Request{})
	h.must(err)
	want := []agentapi.VolumeGrant{grant(volumes, open), grant(volumes, locked)}
	_, err = volumes.Lock(t.Context(), scope, locked.ID)
	h.must(err)

	before, err := node.List(t.Context())
	h.must(err)
	follow := h.follow(node)
	operator := h.open()
	done, err := operator.Rotate(t.Context())
	h.must(err)
	follow()
	if done.Resealed != 1 {
		t.Errorf("%d values were sealed again, want the unlocked volume's key", done.Resealed)
	}
	_, err = operator.Retire(t.Context(), before[0].ID)
	h.must(err)

	volumes = serve(h.open())
	back, err := volumes.Unlock(t.Context(), scope, locked.ID, lockedKey)
	if err != nil || back.Locked {
		t.Fatalf("unlocked, it is %+v, %v", back, err)
	}
	for i, v := range []volume.Volume{open, locked} {
		if g := grant(volumes, v); string(g.Key) != string(want[i].Key) || string(g.ChunkerKey) != string(want[i].ChunkerKey) {
			t.Errorf("volume %s has another key", v.Name)
		}
	}
	_, err = volumes.Lock(t.Context(), scope, open.ID)
	h.must(err)
	_, err = volumes.Unlock(t.Context(), scope, open.ID, openKey)
	h.must(err)
}
