package app

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/google/uuid"
)

// A DamagedObject is one that the object store does not give back as it was
// written, and the newest version of its volume that is whole without it.
type DamagedObject struct {
	VolumeID    uuid.UUID `json:"volume_id"`
	TeamID      uuid.UUID `json:"team_id"`
	Name        string    `json:"name"`
	Kind        string    `json:"kind"`
	Object      string    `json:"object"`
	What        string    `json:"what"` // missing or differs
	FoundAt     time.Time `json:"found_at"`
	LastGoodSeq *int64    `json:"last_good_version"` // nil: none is known
	Locked      bool      `json:"locked"`            // it is looked for once the volume is unlocked
}

// Damage lists what the scrub found and is not whole since.
func (m *Admin) Damage(ctx context.Context) ([]DamagedObject, error) {
	found, err := m.app.volumes.ListDamage(ctx)
	if err != nil {
		return nil, err
	}
	list := []DamagedObject{}
	for _, d := range found {
		list = append(list, DamagedObject{
			VolumeID: d.VolumeID, TeamID: d.TeamID, Name: d.Name, Kind: d.Kind, Object: hex.EncodeToString(d.ID),
			What: d.What, FoundAt: d.FoundAt, LastGoodSeq: d.LastGoodSeq, Locked: d.Locked,
		})
	}
	return list, nil
}
