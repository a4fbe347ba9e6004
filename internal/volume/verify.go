package volume

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/snapshot"
)

// How much of a commit is read back where the store does not check uploads.
const (
	readBackData = 64 // packs of file data; indexes and trees all
	readsAtOnce  = 4
)

// hashOf reads an object and returns the SHA-256 of its bytes, at most one more
// than it should have. The faults are blob.ErrNotFound and blob.ErrUnavailable.
func (s *Service) hashOf(ctx context.Context, volumeID uuid.UUID, o object) (snapshot.ID, error) {
	r, err := s.Store.Get(ctx, o.key(volumeID), 0, -1)
	if err != nil {
		return snapshot.ID{}, err
	}
	defer r.Close()
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(r, o.SizeBytes+1)); err != nil {
		return snapshot.ID{}, err
	}
	return snapshot.ID(h.Sum(nil)), nil
}

// readBack holds what a pod uploaded to a store that takes any bytes against
// its names. What it passes over is found by its MACs when it is read. The
// fault is ErrCommit.
func (s *Service) readBack(ctx context.Context, volumeID uuid.UUID, fresh []object) error {
	fresh = slices.Clone(fresh)
	slices.SortStableFunc(fresh, func(a, b object) int { return rank(a) - rank(b) })
	data := 0
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readsAtOnce)
	for _, o := range fresh {
		if o.Kind == agentapi.KindData {
			if data++; data > readBackData {
				break
			}
		}
		group.Go(func() error {
			sum, err := s.hashOf(ctx, volumeID, o)
			if err != nil {
				return fmt.Errorf("read back an object of volume %s: %w", volumeID, err)
			}
			if sum != snapshot.ID(o.ID) {
				return ErrCommit.With("An object of the commit does not have the bytes its id names.")
			}
			return nil
		})
	}
	return group.Wait()
}

// rank puts data last, in an order that nobody chose: names are hashes.
func rank(o object) int {
	if o.Kind == agentapi.KindData {
		return 1 + int(o.ID[0])
	}
	return 0
}
