package pod

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const sqlListCreators = `select id, created_by from pod where id = any($1) and team_id = $2`

// CreatorsTx tells who made a team's pods, also of those that ended.
func (s *Service) CreatorsTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, pods []uuid.UUID) (map[uuid.UUID]uuid.UUID, error) {
	rows, err := tx.Query(ctx, sqlListCreators, pods, teamID)
	if err != nil {
		return nil, fmt.Errorf("list who made pods: %w", err)
	}
	creators := make(map[uuid.UUID]uuid.UUID, len(pods))
	var podID, userID uuid.UUID
	_, err = pgx.ForEachRow(rows, []any{&podID, &userID}, func() error {
		creators[podID] = userID
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list who made pods: %w", err)
	}
	return creators, nil
}
