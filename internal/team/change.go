package team

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/pg"
)

// Faults of changing a team.
var (
	// ErrName occurs when a team's name is missing or too long.
	ErrName = fault.New(fault.Invalid, "team_name", "The team name must have 1 to 80 characters.")
	// ErrPersonal occurs when a personal team is to be deleted.
	ErrPersonal = fault.New(fault.Conflict, "team_personal", "A personal team cannot be deleted.")
)

const sqlRenameTeam = `update team set name = $2 where id = $1`

// Rename gives the team another name and returns the team. An admin does it.
// The faults are ErrName and those of Authorize.
func (s *Service) Rename(ctx context.Context, scope Scope, name string) (Team, error) {
	name, err := cleanName(name)
	if err != nil {
		return Team{}, err
	}
	var renamed Team
	err = s.change(ctx, scope, Manage, func(tx pgx.Tx, scope Scope, now time.Time) error {
		if _, err := tx.Exec(ctx, sqlRenameTeam, scope.team, name); err != nil {
			return fmt.Errorf("rename team %s: %w", scope.team, err)
		}
		if renamed, err = findTeam(ctx, tx, scope); err != nil {
			return err
		}
		return record(ctx, tx, scope, "team.rename", scope.team, nil, now)
	})
	return renamed, err
}

const sqlFindTeam = `
select t.id, t.name, t.description, t.plan, t.personal_of is not null as is_personal,
  t.max_members, m.role, t.created_at
from membership m join team t on t.id = m.team_id
where t.id = $1 and m.user_id = $2 and t.state = 'active'`

// findTeam reads the scope's team as its person sees it.
func findTeam(ctx context.Context, q pg.Querier, scope Scope) (Team, error) {
	rows, err := q.Query(ctx, sqlFindTeam, scope.team, scope.UserID())
	if err != nil {
		return Team{}, fmt.Errorf("find team %s: %w", scope.team, err)
	}
	t, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Team])
	if err != nil {
		return Team{}, fmt.Errorf("find team %s: %w", scope.team, err)
	}
	return t, nil
}

// cleanName trims a team's name and keeps it on one line. The fault is ErrName.
func cleanName(name string) (string, error) {
	name = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, name))
	if name == "" || utf8.RuneCountInString(name) > maxName {
		return "", ErrName
	}
	return name, nil
}
