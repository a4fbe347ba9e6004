package pod

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/pg"
)

// CutOff ends the last sync of a pod at its last committed snapshot, by the
// operator's word, and returns the pod. A pod that is in no last sync stays as it
// is. A last sync has no limit while it moves (server rule 10); but that it moves
// its agent says, and whoever is root in a pod can put another in its place.
func (s *Service) CutOff(ctx context.Context, podID uuid.UUID) (Pod, error) {
	var ended Pod
	err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		p, err := lockPod(ctx, tx, podID)
		if err != nil {
			return err
		}
		if p.Status.Ending() {
			p.StatusDetail = "The last sync was ended by the operator. " + lastSynced(p)
			err = s.finishTx(ctx, tx, p)
		}
		ended = *p
		return err
	})
	if err != nil {
		return Pod{}, fmt.Errorf("cut off the last sync of pod %s: %w", podID, err)
	}
	return ended, nil
}
