package volume

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const sqlFindTeamSize = `select size_bytes from volume where id = $1 and team_id = $2 and deleted_at is null`

// ReattachTx is AttachTx for background work: a pod takes the place of another
// one that held the volume. The faults are ErrNotFound, ErrLocked, and ErrInUse
// for a volume that is not free or frozen.
func (s *Service) ReattachTx(ctx context.Context, tx pgx.Tx, teamID, volumeID, podID uuid.UUID) (Attachment, error) {
	a := Attachment{VolumeID: volumeID, PodID: podID}
	err := tx.QueryRow(ctx, sqlAttachVolume, pgx.NamedArgs{"id": volumeID, "team": teamID, "pod": podID}).Scan(&a.Epoch, &a.SizeBytes)
	if err == nil {
		return a, nil
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return Attachment{}, fmt.Errorf("attach volume %s: %w", volumeID, err)
	}
	if _, err := s.SizeTx(ctx, tx, teamID, volumeID); err != nil {
		return Attachment{}, err
	}
	v, err := findState(ctx, tx, sqlFindState, volumeID)
	if err != nil {
		return Attachment{}, err
	}
	if v.locked() {
		return Attachment{}, ErrLocked
	}
	return Attachment{}, ErrInUse
}

// SizeTx returns the bytes of a team's volume, for background work. The fault is
// ErrNotFound.
func (s *Service) SizeTx(ctx context.Context, tx pgx.Tx, teamID, volumeID uuid.UUID) (int64, error) {
	var size int64
	err := tx.QueryRow(ctx, sqlFindTeamSize, volumeID, teamID).Scan(&size)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, ErrNotFound
	}
	if err != nil {
		return 0, fmt.Errorf("read the size of volume %s: %w", volumeID, err)
	}
	return size, nil
}
