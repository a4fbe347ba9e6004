package team

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/pg"
)

const sqlIsInvited = `
select exists (select from invitation i join team t on t.id = i.team_id
  where i.email = $1 and i.state = 'pending' and i.expires_at > $2 and t.state = 'active' and t.plan = 'pro')`

// IsInvitedTx says whether a team waits for an address, in any case: where only
// the invited may sign up.
func (s *Service) IsInvitedTx(ctx context.Context, q pg.Querier, email string) (bool, error) {
	email, err := foldEmail(email)
	if err != nil {
		return false, nil //nolint:nilerr // nobody can have invited such an address
	}
	var invited bool
	if err := q.QueryRow(ctx, sqlIsInvited, email, s.Clock.Now()).Scan(&invited); err != nil {
		return false, fmt.Errorf("look for an invitation: %w", err)
	}
	return invited, nil
}

const sqlInvitationWaits = `
select exists (select from invitation i join team t on t.id = i.team_id
  where i.id = $1 and i.state = 'pending' and i.expires_at > $2 and t.state = 'active' and t.plan = 'pro')`

// InvitationWaitsTx says whether an invitation still waits for its person.
func (s *Service) InvitationWaitsTx(ctx context.Context, q pg.Querier, invitationID uuid.UUID) (bool, error) {
	var waits bool
	if err := q.QueryRow(ctx, sqlInvitationWaits, invitationID, s.Clock.Now()).Scan(&waits); err != nil {
		return false, fmt.Errorf("look for invitation %s: %w", invitationID, err)
	}
	return waits, nil
}

const sqlListInviters = `
select team_id from invitation
where email = $1 and state = 'pending' and expires_at > $2
order by team_id`

// listInviters lists the teams that wait for a person's address, in the order
// in which they are locked.
func (s *Service) listInviters(ctx context.Context, q pg.Querier, p Person) (email string, teams []uuid.UUID, err error) {
	if email, err = foldEmail(p.Email); err != nil {
		return "", nil, nil //nolint:nilerr // nobody can have invited such an address
	}
	rows, err := q.Query(ctx, sqlListInviters, email, s.Clock.Now())
	if err != nil {
		return "", nil, fmt.Errorf("look for invitations of user %s: %w", p.ID, err)
	}
	if teams, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID]); err != nil {
		return "", nil, fmt.Errorf("look for invitations of user %s: %w", p.ID, err)
	}
	return email, teams, nil
}

// AcceptTx makes a person who just proved their address a member of every team
// that waits for it and has a seat free. An invitation that finds none goes on
// waiting.
func (s *Service) AcceptTx(ctx context.Context, tx pgx.Tx, p Person) error {
	email, teams, err := s.listInviters(ctx, tx, p)
	if err != nil {
		return err
	}
	for _, teamID := range teams {
		if err := s.acceptTx(ctx, tx, teamID, email, p); err != nil {
			return fmt.Errorf("accept the invitation of user %s to team %s: %w", p.ID, teamID, err)
		}
	}
	return nil
}

// acceptInvitations is AcceptTx with a transaction for each team: for seats
// that became free since, and for who signed in while being invited.
func (s *Service) acceptInvitations(ctx context.Context, p Person) error {
	email, teams, err := s.listInviters(ctx, s.Pool, p)
	if err != nil {
		return err
	}
	for _, teamID := range teams {
		err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error { return s.acceptTx(ctx, tx, teamID, email, p) })
		if err != nil {
			return fmt.Errorf("accept the invitation of user %s to team %s: %w", p.ID, teamID, err)
		}
	}
	return nil
}

const sqlLockProTeam = `
select id from team where id = $1 and state = 'active' and plan = 'pro' and personal_of is null for update`

const sqlAcceptInvitation = `
update invitation set state = 'accepted', closed_at = $3
where team_id = $1 and email = $2 and state = 'pending' and expires_at > $3`

const sqlJoinOnce = `
insert into membership (id, team_id, user_id, role, created_at)
values (@id, @team, @user, @role, @now)
on conflict (team_id, user_id) do nothing`

// acceptTx reads everything again under the team's lock: cancelling, the plan
// and the seats win over accepting.
func (s *Service) acceptTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, email string, p Person) error {
	tag, err := tx.Exec(ctx, sqlLockProTeam, teamID)
	if err != nil || tag.RowsAffected() == 0 {
		return err
	}
	members, seats, err := seatsTx(ctx, tx, teamID)
	if err != nil || members >= seats {
		return err
	}
	now := s.Clock.Now()
	tag, err = tx.Exec(ctx, sqlAcceptInvitation, teamID, email, now)
	if err != nil || tag.RowsAffected() == 0 {
		return err
	}
	if _, err := tx.Exec(ctx, sqlJoinOnce, pgx.NamedArgs{"id": id.New(), "team": teamID, "user": p.ID, "role": Member, "now": now}); err != nil {
		return err
	}
	return record(ctx, tx, Scope{team: teamID, person: p}, "member.join", p.ID, nil, now)
}
