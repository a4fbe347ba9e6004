package team

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const sqlListAdmins = `
select user_id from membership where team_id = $1 and role = 'admin' order by created_at, id`

// AdminsTx lists a team's admins, the longest-standing first: for letters of
// background work.
func (s *Service) AdminsTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID) ([]uuid.UUID, error) {
	rows, err := tx.Query(ctx, sqlListAdmins, teamID)
	if err != nil {
		return nil, fmt.Errorf("list the admins of team %s: %w", teamID, err)
	}
	admins, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return nil, fmt.Errorf("list the admins of team %s: %w", teamID, err)
	}
	return admins, nil
}

const sqlFindName = `select name from team where id = $1 and state = 'active'`

// NameTx returns a team's name for letters. The fault is ErrNotFound, also for
// a team that is not active.
func (s *Service) NameTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID) (string, error) {
	var name string
	err := tx.QueryRow(ctx, sqlFindName, teamID).Scan(&name)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", ErrNotFound
	}
	if err != nil {
		return "", fmt.Errorf("read the name of team %s: %w", teamID, err)
	}
	return name, nil
}

// EmailTx returns a user's address, empty when nobody knows it.
func (s *Service) EmailTx(ctx context.Context, tx pgx.Tx, userID uuid.UUID) (string, error) {
	one := []Membership{{UserID: userID}}
	err := s.addEmails(ctx, tx, one)
	return one[0].Email, err
}
