package volume

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const sqlListCreators = `select id, created_by from volume where id = any($1)`

// CreatorsTx tells who made volumes, also of those that are gone. It asks for no
// team: a volume may have been handed to another since.
func (s *Service) CreatorsTx(ctx context.Context, tx pgx.Tx, volumes []uuid.UUID) (map[uuid.UUID]uuid.UUID, error) {
	rows, err := tx.Query(ctx, sqlListCreators, volumes)
	if err != nil {
		return nil, fmt.Errorf("list who made volumes: %w", err)
	}
	creators := make(map[uuid.UUID]uuid.UUID, len(volumes))
	var volumeID, userID uuid.UUID
	_, err = pgx.ForEachRow(rows, []any{&volumeID, &userID}, func() error {
		creators[volumeID] = userID
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list who made volumes: %w", err)
	}
	return creators, nil
}
