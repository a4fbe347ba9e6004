package volume

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/team"
)

// Faults of this package.
var (
	// ErrNotFound occurs when the team has no such volume.
	ErrNotFound = fault.New(fault.NotFound, "volume_not_found", "There is no such volume.")
	// ErrInUse occurs when a pod holds the volume.
	ErrInUse = fault.New(fault.Conflict, "volume_in_use", "Volume is in use")
	// ErrFenced occurs when an attachment is over: its epoch is old.
	ErrFenced = fault.New(fault.Conflict, agentapi.CodeFenced, "This pod no longer holds the volume.")
)

var errTODO = errors.New("volume: not written yet")

// Create makes a volume.
func (s *Service) Create(ctx context.Context, scope team.Scope, name string, once idem.Request) (Volume, error) {
	return Volume{}, errTODO
}

// List returns the team's volumes that are not deleted, newest first.
func (s *Service) List(ctx context.Context, scope team.Scope) ([]Volume, error) { return nil, errTODO }

// ListDeleted returns the team's trash, newest first.
func (s *Service) ListDeleted(ctx context.Context, scope team.Scope) ([]Volume, error) {
	return nil, errTODO
}

// Find returns one volume, also from the trash.
func (s *Service) Find(ctx context.Context, scope team.Scope, id uuid.UUID) (Volume, error) {
	return Volume{}, errTODO
}

// FindTx returns one volume that is not deleted, without locking it.
func (s *Service) FindTx(ctx context.Context, tx pgx.Tx, scope team.Scope, id uuid.UUID) (Volume, error) {
	return Volume{}, errTODO
}

// Delete puts a volume into the trash.
func (s *Service) Delete(ctx context.Context, scope team.Scope, id uuid.UUID) error { return errTODO }

// Restore takes a volume out of the trash.
func (s *Service) Restore(ctx context.Context, scope team.Scope, id uuid.UUID, once idem.Request) (Volume, error) {
	return Volume{}, errTODO
}

// AttachTx gives a volume to a pod.
func (s *Service) AttachTx(ctx context.Context, tx pgx.Tx, scope team.Scope, volumeID, podID uuid.UUID, now time.Time) (Attachment, error) {
	return Attachment{}, errTODO
}

// MarkRestoredTx opens the gate for commits.
func (s *Service) MarkRestoredTx(ctx context.Context, tx pgx.Tx, volumeID uuid.UUID, epoch int64) error {
	return errTODO
}

// ReleaseTx takes the volume from a pod.
func (s *Service) ReleaseTx(ctx context.Context, tx pgx.Tx, volumeID, podID uuid.UUID, now time.Time) error {
	return errTODO
}

// Grant returns what the agent needs of the volume. Not inside a transaction.
func (s *Service) Grant(ctx context.Context, a Attachment, restart bool) (agentapi.VolumeGrant, error) {
	return agentapi.VolumeGrant{}, errTODO
}

// Sign grants single moves of objects.
func (s *Service) Sign(ctx context.Context, a Attachment, in agentapi.Sign) (agentapi.Grants, error) {
	return agentapi.Grants{}, errTODO
}

// Commit moves the head. final says that the last sync is committed and published.
func (s *Service) Commit(ctx context.Context, a Attachment, in agentapi.Commit) (out agentapi.Committed, final bool, err error) {
	return agentapi.Committed{}, false, errTODO
}

// FinalState says whether a pod's final snapshot is committed, and published.
func (s *Service) FinalState(ctx context.Context, volumeID, podID uuid.UUID) (committed, published bool, err error) {
	return false, false, errTODO
}

// PublishDue publishes what was committed and not published yet.
func (s *Service) PublishDue(ctx context.Context) error { return errTODO }

// Repository says where a volume's data lies and how a public tool opens it.
func (s *Service) Repository(ctx context.Context, volumeID uuid.UUID) (path, password, snapshot string, err error) {
	return "", "", "", errTODO
}
