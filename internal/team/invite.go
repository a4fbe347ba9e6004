package team

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/idem"
)

const (
	inviteFor     = 14 * 24 * time.Hour // how long an invitation is valid
	invitesInHour = 20                  // of one team
	maxEmail      = 255
	proSeats      = 5 // of a Pro team that says nothing else
)

// Faults of inviting.
var (
	// ErrEmail occurs when the address is missing, too long or none.
	ErrEmail = fault.New(fault.Invalid, "invite_email", "Please enter a valid email address")
	// ErrInvitePlan occurs when the plan has no invitations.
	ErrInvitePlan = fault.New(fault.Forbidden, "invite_plan", "Upgrade to Pro to invite team members")
	// ErrMemberAlready occurs when the address is a member's.
	ErrMemberAlready = fault.New(fault.Conflict, "invite_member", "This person is a member of the team already.")
	// ErrSeats occurs when every seat is taken by members and invitations.
	ErrSeats = fault.New(fault.Conflict, "invite_seats", "All seats of this team are taken.")
	// ErrInviteRate occurs when a team invites too often.
	ErrInviteRate = fault.New(fault.TooMany, "invite_rate", "Too many invitations. Please try again later.")
	// ErrInvitationNotFound occurs when the team has no such pending invitation.
	ErrInvitationNotFound = fault.New(fault.NotFound, "invitation_not_found", "There is no such invitation.")
)

// emailForm is what a letter can be sent to and a person can sign in with:
// printable ASCII, name@host.domain.
var emailForm = regexp.MustCompile(`^[^\x00-\x20\x7f-\x{10ffff}@"(),:;<>\[\\\]]{1,64}@[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+$`)

// An Invitation waits for somebody who has no account yet.
type Invitation struct {
	ID        uuid.UUID
	Email     string // case-folded
	CreatedAt time.Time
	ExpiresAt time.Time
}

// An InviteStatus is what became of an invitation at once.
type InviteStatus string

// The outcomes of Invite.
const (
	Accepted InviteStatus = "accepted" // the person had an account and is a member now
	Pending  InviteStatus = "pending"  // a mail is on its way
)

// Invite asks somebody into the team by their address. A verified user joins
// at once; anybody else gets a mail (SendInvitation) and joins at their first
// sign-in. Inviting again renews. An admin does it. The faults are ErrEmail,
// ErrInvitePlan, ErrMemberAlready, ErrSeats, ErrInviteRate and those of
// Authorize.
func (s *Service) Invite(ctx context.Context, scope Scope, email string, once idem.Request) (InviteStatus, error) {
	email, err := foldEmail(email)
	if err != nil {
		return "", err
	}
	var status InviteStatus
	err = s.change(ctx, scope, Manage, func(tx pgx.Tx, scope Scope, now time.Time) error {
		status, err = idem.RunTx(ctx, tx, once, func() (InviteStatus, error) { return s.inviteTx(ctx, tx, scope, email, now) })
		return err
	})
	return status, err
}

// foldEmail checks an address and folds its case: the form invitations are
// compared in. The fault is ErrEmail.
func foldEmail(email string) (string, error) {
	email = strings.ToLower(strings.TrimSpace(email))
	switch {
	case email == "":
		return "", ErrEmail.With("Email is required")
	case len(email) > maxEmail:
		return "", ErrEmail.With("Email must be less than 255 characters")
	case !emailForm.MatchString(email):
		return "", ErrEmail
	}
	return email, nil
}

const sqlCancelInvitation = `
update invitation set state = 'cancelled', closed_at = $3
where team_id = $1 and email = $2 and state = 'pending'`

const sqlInsertInvitation = `
insert into invitation (id, team_id, email, state, invited_by, created_at, created_wall_at, expires_at, closed_at)
values (@id, @team, @email, @state, @by, @now, @wall, @expires, @closed)`

func (s *Service) inviteTx(ctx context.Context, tx pgx.Tx, scope Scope, email string, now time.Time) (InviteStatus, error) {
	if scope.plan != Pro || scope.personal {
		return "", ErrInvitePlan
	}
	user, known, err := s.findUser(ctx, tx, email)
	if err != nil {
		return "", err
	}
	if err := s.mayInvite(ctx, tx, scope, user, email, now); err != nil {
		return "", err
	}
	if _, err := tx.Exec(ctx, sqlCancelInvitation, scope.team, email, now); err != nil {
		return "", fmt.Errorf("renew an invitation to team %s: %w", scope.team, err)
	}
	invitation, status := id.New(), Pending
	args := pgx.NamedArgs{
		"id": invitation, "team": scope.team, "email": email, "state": "pending", "by": scope.UserID(),
		"now": now, "wall": s.Clock.Wall(), "expires": now.Add(inviteFor), "closed": nil,
	}
	if known {
		status, args["state"], args["closed"] = Accepted, "accepted", now
	}
	if _, err := tx.Exec(ctx, sqlInsertInvitation, args); err != nil {
		return "", fmt.Errorf("invite to team %s: %w", scope.team, err)
	}
	if known {
		err = joinTx(ctx, tx, scope.team, user.ID, Member, now)
	} else {
		err = s.queueLetter(ctx, tx, invitation)
	}
	if err != nil {
		return "", err
	}
	return status, record(ctx, tx, scope, "member.invite", user.ID, map[string]any{"status": status}, now)
}

func (s *Service) findUser(ctx context.Context, tx pgx.Tx, email string) (Person, bool, error) {
	if s.Hooks.FindUser == nil {
		return Person{}, false, nil
	}
	return s.Hooks.FindUser(ctx, tx, email)
}

const sqlCountInvitations = `
select count(*) filter (where state = 'pending' and expires_at > $3 and email <> $2) as pending,
  count(*) filter (where coalesce(created_wall_at, created_at) > $4) as asked
from invitation where team_id = $1`

// mayInvite holds the limits of a team. The team is locked; the address's own
// invitation is not counted, for it is being renewed.
func (s *Service) mayInvite(ctx context.Context, tx pgx.Tx, scope Scope, user Person, email string, now time.Time) error {
	if user.ID != uuid.Nil {
		_, _, err := findMember(ctx, tx, scope, user.ID)
		if err == nil {
			return ErrMemberAlready
		}
		if fault.Of(err) == nil {
			return err
		}
	}
	var pending, asked int
	err := tx.QueryRow(ctx, sqlCountInvitations, scope.team, email, now, s.Clock.Wall().Add(-time.Hour)).Scan(&pending, &asked)
	if err != nil {
		return fmt.Errorf("count the invitations of team %s: %w", scope.team, err)
	}
	if asked >= invitesInHour {
		return ErrInviteRate
	}
	members, seats, err := seatsTx(ctx, tx, scope.team)
	if err != nil {
		return err
	}
	if members+pending >= seats {
		return ErrSeats
	}
	return nil
}

const sqlFindSeats = `
select t.plan, t.max_members, (select count(*) from membership m where m.team_id = t.id) as members
from team t where t.id = $1`

// seatsTx returns how many members a team has and may have.
func seatsTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID) (members, seats int, err error) {
	var plan Plan
	var paid *int
	if err := tx.QueryRow(ctx, sqlFindSeats, teamID).Scan(&plan, &paid, &members); err != nil {
		return 0, 0, fmt.Errorf("count the seats of team %s: %w", teamID, err)
	}
	return members, Seats(plan, paid), nil
}

// Seats is how many members a team may have: what it paid for, or else the
// plan's own number.
func Seats(plan Plan, paid *int) int {
	switch {
	case paid != nil && *paid > 0:
		return *paid
	case plan == Pro:
		return proSeats
	}
	return 1
}

const sqlListInvitations = `
select id, email, created_at, expires_at from invitation
where team_id = $1 and state = 'pending' and expires_at > $2
order by created_at desc, id`

// Invitations lists the team's pending invitations, newest first. The fault is
// ErrInvitePlan for a team without any.
func (s *Service) Invitations(ctx context.Context, scope Scope) ([]Invitation, error) {
	if scope.plan != Pro || scope.personal {
		return nil, ErrInvitePlan
	}
	rows, err := s.Pool.Query(ctx, sqlListInvitations, scope.team, s.Clock.Now())
	if err != nil {
		return nil, fmt.Errorf("list the invitations of team %s: %w", scope.team, err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByName[Invitation])
	if err != nil {
		return nil, fmt.Errorf("list the invitations of team %s: %w", scope.team, err)
	}
	return list, nil
}

const sqlCancelInvitationByID = `
update invitation set state = 'cancelled', closed_at = $3
where id = $1 and team_id = $2 and state = 'pending'`

// CancelInvitation withdraws a pending invitation. An admin does it. The fault
// is ErrInvitationNotFound, also when it was accepted since.
func (s *Service) CancelInvitation(ctx context.Context, scope Scope, invitationID uuid.UUID) error {
	return s.change(ctx, scope, Manage, func(tx pgx.Tx, scope Scope, now time.Time) error {
		tag, err := tx.Exec(ctx, sqlCancelInvitationByID, invitationID, scope.team, now)
		if err != nil {
			return fmt.Errorf("cancel invitation %s: %w", invitationID, err)
		}
		if tag.RowsAffected() == 0 {
			return ErrInvitationNotFound
		}
		return record(ctx, tx, scope, "member.invite.cancel", invitationID, nil, now)
	})
}
