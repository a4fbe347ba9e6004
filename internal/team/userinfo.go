package team

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/pg"
)

// maxName is the longest name of a team in characters.
const maxName = 80

// UserInfo returns a person's teams. At the first call of a person it makes
// their personal team with its wallet; any number of first calls at once make
// one. Teams that wait for the person's address take them in.
func (s *Service) UserInfo(ctx context.Context, p Person) (UserInfo, error) {
	if err := s.acceptInvitations(ctx, p); err != nil {
		return UserInfo{}, err
	}
	teams, err := s.listTeams(ctx, p.ID)
	if err != nil {
		return UserInfo{}, err
	}
	if len(teams) == 0 || !teams[0].IsPersonal {
		if err := s.createPersonal(ctx, p); err != nil {
			return UserInfo{}, err
		}
		if teams, err = s.listTeams(ctx, p.ID); err != nil {
			return UserInfo{}, err
		}
		if len(teams) == 0 || !teams[0].IsPersonal {
			return UserInfo{}, fmt.Errorf("user %s has no personal team after it was made", p.ID)
		}
	}
	return UserInfo{Person: p, Personal: teams[0], Teams: teams}, nil
}

const sqlListTeams = `
select t.id, t.name, t.description, t.plan, t.personal_of is not null as is_personal,
  t.max_members, m.role, t.created_at
from membership m join team t on t.id = m.team_id
where m.user_id = $1 and t.state = 'active'
order by t.personal_of is null, t.created_at desc, t.id`

func (s *Service) listTeams(ctx context.Context, userID uuid.UUID) ([]Team, error) {
	rows, err := s.Pool.Query(ctx, sqlListTeams, userID)
	if err != nil {
		return nil, fmt.Errorf("list the teams of user %s: %w", userID, err)
	}
	teams, err := pgx.CollectRows(rows, pgx.RowToStructByName[Team])
	if err != nil {
		return nil, fmt.Errorf("list the teams of user %s: %w", userID, err)
	}
	return teams, nil
}

const sqlInsertPersonalTeam = `
insert into team (id, name, description, plan, state, personal_of, created_by, created_at)
values (@id, @name, '', 'hobby', 'active', @user, @user, @now)
on conflict (personal_of) do nothing`

const sqlInsertMembership = `
insert into membership (id, team_id, user_id, role, created_at)
values (@id, @team, @user, @role, @now)`

func (s *Service) createPersonal(ctx context.Context, p Person) error {
	return pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error { return s.createPersonalTx(ctx, tx, p, s.Clock.Now()) })
}

// createPersonalTx waits for another call that makes the same team, and then
// does nothing.
func (s *Service) createPersonalTx(ctx context.Context, tx pgx.Tx, p Person, now time.Time) error {
	teamID := id.New()
	tag, err := tx.Exec(ctx, sqlInsertPersonalTeam, pgx.NamedArgs{
		"id": teamID, "name": personalName(p.Email), "user": p.ID, "now": now,
	})
	if err != nil {
		return fmt.Errorf("make the personal team of user %s: %w", p.ID, err)
	}
	if tag.RowsAffected() == 0 { // another call made it
		return nil
	}
	if err := joinTx(ctx, tx, teamID, p.ID, Admin, now); err != nil {
		return err
	}
	if s.Hooks.OpenWallet == nil {
		return nil
	}
	return s.Hooks.OpenWallet(ctx, tx, teamID, now)
}

const sqlFindPersonal = `select id from team where personal_of = $1`

// PersonalTx returns a user's personal team, which is made when they never
// made a call. It locks no team that is there.
func (s *Service) PersonalTx(ctx context.Context, tx pgx.Tx, userID uuid.UUID, now time.Time) (uuid.UUID, error) {
	found, err := findPersonal(ctx, tx, userID)
	if err != nil || found != uuid.Nil {
		return found, err
	}
	email, err := s.EmailTx(ctx, tx, userID)
	if err != nil {
		return uuid.Nil, err
	}
	if err := s.createPersonalTx(ctx, tx, Person{ID: userID, Email: email}, now); err != nil {
		return uuid.Nil, err
	}
	if found, err = findPersonal(ctx, tx, userID); err == nil && found == uuid.Nil {
		err = fmt.Errorf("user %s has no personal team after it was made", userID)
	}
	return found, err
}

// findPersonal returns a user's personal team, or Nil before their first call.
func findPersonal(ctx context.Context, tx pgx.Tx, userID uuid.UUID) (uuid.UUID, error) {
	var personal uuid.UUID
	err := tx.QueryRow(ctx, sqlFindPersonal, userID).Scan(&personal)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return uuid.Nil, fmt.Errorf("find the personal team of user %s: %w", userID, err)
	}
	return personal, nil
}

func joinTx(ctx context.Context, tx pgx.Tx, teamID, userID uuid.UUID, role Role, now time.Time) error {
	_, err := tx.Exec(ctx, sqlInsertMembership, pgx.NamedArgs{
		"id": id.New(), "team": teamID, "user": userID, "role": role, "now": now,
	})
	if err != nil {
		return fmt.Errorf("add user %s to team %s: %w", userID, teamID, err)
	}
	return nil
}

// personalName is "{local part}'s team", cut to what a name may have.
func personalName(email string) string {
	const rest = "'s team"
	local, _, _ := strings.Cut(email, "@")
	runes := []rune(local)
	if len(runes) > maxName-len(rest) {
		runes = runes[:maxName-len(rest)]
	}
	return string(runes) + rest
}

const sqlListMembers = `
select id, user_id, role, '' as email from membership
where team_id = $1 order by created_at, id`

// Members lists a team's members, the longest-standing first.
func (s *Service) Members(ctx context.Context, scope Scope) ([]Membership, error) {
	var members []Membership
	err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sqlListMembers, scope.team)
		if err != nil {
			return err
		}
		if members, err = pgx.CollectRows(rows, pgx.RowToStructByName[Membership]); err != nil {
			return err
		}
		return s.addEmails(ctx, tx, members)
	})
	if err != nil {
		return nil, fmt.Errorf("list the members of team %s: %w", scope.team, err)
	}
	return members, nil
}

func (s *Service) addEmails(ctx context.Context, tx pgx.Tx, members []Membership) error {
	if s.Hooks.Emails == nil {
		return nil
	}
	users := make([]uuid.UUID, len(members))
	for i, m := range members {
		users[i] = m.UserID
	}
	emails, err := s.Hooks.Emails(ctx, tx, users)
	if err != nil {
		return err
	}
	for i := range members {
		members[i].Email = emails[members[i].UserID]
	}
	return nil
}
