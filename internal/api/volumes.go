package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"homeport.dev/homeport/internal/apitype"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/volume"
	"homeport.dev/homeport/internal/wallet"
)

func (s *server) registerVolumes() {
	session(s, huma.Operation{
		OperationID: "list-volumes", Method: http.MethodGet, Path: "/volumes",
		Summary: "The team's volumes, newest first; with deleted=true, those in the trash",
	}, s.listVolumes)
	session(s, huma.Operation{
		OperationID: "create-volume", Method: http.MethodPost, Path: "/volumes", DefaultStatus: http.StatusCreated,
		Summary: "Create a volume",
	}, s.createVolume)
	session(s, huma.Operation{
		OperationID: "delete-volume", Method: http.MethodDelete, Path: "/volumes/{id}", DefaultStatus: http.StatusNoContent,
		Summary: "Move a volume to the trash, where it stays for 7 days",
	}, s.deleteVolume)
	session(s, huma.Operation{
		OperationID: "restore-volume", Method: http.MethodPost, Path: "/volumes/{id}/restore", DefaultStatus: http.StatusCreated,
		Summary: "Take a volume out of the trash",
	}, s.restoreVolume)
	session(s, huma.Operation{
		OperationID: "unlock-volume", Method: http.MethodPost, Path: "/volumes/{id}/unlock", DefaultStatus: http.StatusOK,
		Summary: "Unlock a volume with its team's key, until an hour after a pod last held it",
	}, s.unlockVolume)
	session(s, huma.Operation{
		OperationID: "lock-volume", Method: http.MethodPost, Path: "/volumes/{id}/lock", DefaultStatus: http.StatusOK,
		Summary: "Forget a volume's key now; refused while a pod uses the volume",
	}, s.lockVolume)
	session(s, huma.Operation{
		OperationID: "list-volume-segments", Method: http.MethodGet, Path: "/volumes/{id}/segments",
		Summary: "The rates at which a volume was charged",
	}, s.listSegments)
}

type volumesIn struct {
	Bearer
	InTeam
	Deleted bool `query:"deleted"`
}

func (s *server) listVolumes(ctx context.Context, p team.Person, in volumesIn) (*list[apitype.Volume], error) {
	scope, err := s.scope(ctx, p, in.TeamID, team.Read)
	if err != nil {
		return nil, err
	}
	read := s.Volumes.List
	if in.Deleted {
		read = s.Volumes.ListDeleted
	}
	volumes, err := read(ctx, scope)
	if err != nil {
		return nil, err
	}
	return listOf(volumes, volumeOf), nil
}

func volumeOf(v volume.Volume) apitype.Volume {
	return apitype.Volume{
		ID: v.ID.String(), TeamID: v.TeamID.String(), Name: v.Name, SizeGB: apitype.Decimal(v.SizeGB()),
		PricePerHour: apitype.Decimal(v.Rate().Decimal()), CurrentlyUsed: v.CurrentlyUsed, Deleted: v.Deleted,
		CreatedAt: v.CreatedAt, DeletedAt: v.DeletedAt, PurgeAt: v.PurgeAt, SyncedAt: v.LastCommitAt, CreatedBy: v.CreatedBy.String(),
		TeamKey: v.TeamKey, Locked: v.Locked,
	}
}

type createVolumeIn struct {
	Bearer
	Once
	Body apitype.CreateVolume
}

func (s *server) createVolume(ctx context.Context, p team.Person, in createVolumeIn) (*body[apitype.Volume], error) {
	scope, err := s.scope(ctx, p, in.Body.TeamID, team.Use)
	if err != nil {
		return nil, err
	}
	once := in.request(s, p, "POST /volumes")
	var v volume.Volume
	if key := in.Body.Key; key != nil {
		v, err = s.Volumes.CreateLocked(ctx, scope, in.Body.Name, *key, once)
	} else {
		v, err = s.Volumes.Create(ctx, scope, in.Body.Name, once)
	}
	if err != nil {
		return nil, err
	}
	return &body[apitype.Volume]{Body: volumeOf(v)}, nil
}

func (s *server) deleteVolume(ctx context.Context, p team.Person, in OneIn) (*nothing, error) {
	scope, volumeID, err := s.volume(ctx, p, in, team.Use)
	if err != nil {
		return nil, err
	}
	return nil, s.Volumes.Delete(ctx, scope, volumeID)
}

// volume proves a right in the team of a call on one volume, and reads its id.
func (s *server) volume(ctx context.Context, p team.Person, in OneIn, need team.Right) (team.Scope, uuid.UUID, error) {
	scope, err := s.scope(ctx, p, in.TeamID, need)
	if err != nil {
		return team.Scope{}, uuid.Nil, err
	}
	volumeID, err := parse(in.ID, volume.ErrNotFound)
	return scope, volumeID, err
}

type restoreVolumeIn struct {
	OneIn
	Key string `header:"Idempotency-Key" maxLength:"255"`
}

func (s *server) restoreVolume(ctx context.Context, p team.Person, in restoreVolumeIn) (*body[apitype.Volume], error) {
	scope, volumeID, err := s.volume(ctx, p, in.OneIn, team.Use)
	if err != nil {
		return nil, err
	}
	once := Once{Key: in.Key}.request(s, p, "POST /volumes/"+volumeID.String()+"/restore", scope.TeamID().String())
	v, err := s.Volumes.Restore(ctx, scope, volumeID, once)
	if err != nil {
		return nil, err
	}
	return &body[apitype.Volume]{Body: volumeOf(v)}, nil
}

type unlockVolumeIn struct {
	OneIn
	Body apitype.UnlockVolume
}

func (s *server) unlockVolume(ctx context.Context, p team.Person, in unlockVolumeIn) (*body[apitype.Volume], error) {
	scope, volumeID, err := s.volume(ctx, p, in.OneIn, team.Use)
	if err != nil {
		return nil, err
	}
	v, err := s.Volumes.Unlock(ctx, scope, volumeID, in.Body.Key)
	if err != nil {
		return nil, err
	}
	return &body[apitype.Volume]{Body: volumeOf(v)}, nil
}

func (s *server) lockVolume(ctx context.Context, p team.Person, in OneIn) (*body[apitype.Volume], error) {
	scope, volumeID, err := s.volume(ctx, p, in, team.Use)
	if err != nil {
		return nil, err
	}
	v, err := s.Volumes.Lock(ctx, scope, volumeID)
	if err != nil {
		return nil, err
	}
	return &body[apitype.Volume]{Body: volumeOf(v)}, nil
}

func (s *server) listSegments(ctx context.Context, p team.Person, in OneIn) (*list[apitype.Segment], error) {
	scope, volumeID, err := s.volume(ctx, p, in, team.Read)
	if err != nil {
		return nil, err
	}
	if _, err := s.Volumes.Find(ctx, scope, volumeID); err != nil {
		return nil, err
	}
	segments, err := s.Wallet.Segments(ctx, scope, volumeID)
	if err != nil {
		return nil, err
	}
	return listOf(segments, func(g wallet.Segment) apitype.Segment {
		return apitype.Segment{From: g.From, To: g.To, Rate: apitype.Decimal(g.Rate.Decimal())}
	}), nil
}
