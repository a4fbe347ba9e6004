package app

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/audit"
	"homeport.dev/homeport/internal/volume"
)

// recordPurge keeps for ever that a volume's data was deleted for good, and why.
func recordPurge(ctx context.Context, tx pgx.Tx, p volume.Purged) error {
	why := "deleted by a user"
	if p.DeletedBy == uuid.Nil {
		why = "storage not paid"
	}
	return audit.RecordTx(ctx, tx, audit.Entry{
		At: p.At, TeamID: p.TeamID, ActorID: p.DeletedBy, Action: "volume.purge", ObjectID: p.VolumeID,
		Detail: map[string]any{"why": why, "size_bytes": p.SizeBytes, "deleted_at": p.DeletedAt},
	})
}
