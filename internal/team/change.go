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
	"homeport.dev/homeport/internal/money"
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

// A Change is what an admin changes of a team; what is nil stays.
type Change struct {
	Name       *string
	SpendLimit *money.USD // per calendar month
}

// Change changes a team, all of it or nothing, and returns the team. An admin
// does it. The faults are ErrName, those of SetSpendLimit and those of
// Authorize.
func (s *Service) Change(ctx context.Context, scope Scope, c Change) (Team, error) {
	var err error
	name := ""
	if c.Name != nil {
		if name, err = cleanName(*c.Name); err != nil {
			return Team{}, err
		}
	}
	var changed Team
	err = s.change(ctx, scope, Manage, func(tx pgx.Tx, scope Scope, now time.Time) error {
		if c.Name != nil {
			if err := renameTx(ctx, tx, scope, name, now); err != nil {
				return err
			}
		}
		if c.SpendLimit != nil && s.Hooks.SetSpendLimit != nil {
			if err := s.Hooks.SetSpendLimit(ctx, tx, scope.team, scope.plan, *c.SpendLimit, now); err != nil {
				return err
			}
			detail := map[string]any{"usd_micro": *c.SpendLimit}
			if err := record(ctx, tx, scope, "team.spend_limit", scope.team, detail, now); err != nil {
				return err
			}
		}
		changed, err = findTeam(ctx, tx, scope)
		return err
	})
	return changed, err
}

func renameTx(ctx context.Context, tx pgx.Tx, scope Scope, name string, now time.Time) error {
	if _, err := tx.Exec(ctx, sqlRenameTeam, scope.team, name); err != nil {
		return fmt.Errorf("rename team %s: %w", scope.team, err)
	}
	return record(ctx, tx, scope, "team.rename", scope.team, nil, now)
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
