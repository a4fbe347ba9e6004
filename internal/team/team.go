// Package team owns teams, memberships and invitations, and is the only maker
// of a Scope: the proven right of a person to act for a team.
//
// What always holds: everyone who signed in has exactly one personal team;
// another person's team is not found rather than forbidden; role, plan and
// membership are read in the same transaction as the write they allow, under
// the team's lock (LockTx). Wallets, users, subscriptions and what a team owns
// belong to others, who are reached through Hooks.
package team

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/mail"
	"homeport.dev/homeport/internal/money"
)

// Faults of this package.
var (
	// ErrNotFound occurs when there is no such team, or the person is not in it.
	ErrNotFound = fault.New(fault.NotFound, "team_not_found", "There is no such team.")
	// ErrForbidden occurs when the person's role does not allow the act.
	ErrForbidden = fault.New(fault.Forbidden, "role", "Your role in this team does not allow this.")
)

// A Person is a signed-in user.
type Person struct {
	ID    uuid.UUID
	Email string
}

// A Role is what a person is in a team.
type Role string

// The roles.
const (
	Admin  Role = "admin"  // everything
	Member Role = "member" // creates; deletes their own; reads
	Viewer Role = "viewer" // reads
)

// A Plan is what a team pays for.
type Plan string

// The plans. Free has the rules of Hobby.
const (
	Free  Plan = "free"
	Hobby Plan = "hobby"
	Pro   Plan = "pro"
)

// A Right is what a call needs.
type Right uint8

// The rights.
const (
	Read   Right = iota // any member
	Use                 // create, and delete one's own: member and admin
	Manage              // admin only
	Fund                // add money: any member
)

// allows says whether a role has a right.
func (r Role) allows(need Right) bool {
	switch need {
	case Read, Fund:
		return r == Admin || r == Member || r == Viewer
	case Use:
		return r == Admin || r == Member
	case Manage:
		return r == Admin
	}
	return false
}

// A Team as one of its members sees it.
type Team struct {
	ID          uuid.UUID
	Name        string
	Description string
	Plan        Plan
	IsPersonal  bool
	MaxMembers  *int // seats paid for; nil: the plan's own number
	Role        Role // the person's
	CreatedAt   time.Time
}

// A Membership is one person in a team.
type Membership struct {
	ID     uuid.UUID // of the membership
	UserID uuid.UUID
	Email  string
	Role   Role
}

// UserInfo is a person and all their teams, the personal one first.
type UserInfo struct {
	Person   Person
	Personal Team
	Teams    []Team
}

// Hooks are the questions and messages of this package to those that know it.
// They run inside the transaction they are given, if any.
type Hooks struct {
	// OpenWallet gives a new team its wallet. Called again for the same team
	// it does nothing.
	OpenWallet func(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, now time.Time) error
	// FindUser finds a verified user by their case-folded e-mail address.
	FindUser func(ctx context.Context, tx pgx.Tx, email string) (Person, bool, error)
	// Emails returns the addresses of users. Unknown users are left out.
	Emails func(ctx context.Context, tx pgx.Tx, users []uuid.UUID) (map[uuid.UUID]string, error)
	// BlockDelete returns the fault that keeps a team from being deleted, or nil.
	BlockDelete func(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, now time.Time) error
	// OnDelete ends what a team owned. Its fault keeps the team.
	OnDelete func(ctx context.Context, tx pgx.Tx, end Ending) error
	// SetSpendLimit gives a team a monthly spend limit of its own. Its fault
	// keeps the one before.
	SetSpendLimit func(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, plan Plan, limit money.USD, now time.Time) error
	// OnPlan follows a change of plan.
	OnPlan func(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, plan Plan, now time.Time) error
	// OnUnpaid tells a team of its unpaid subscription.
	OnUnpaid func(ctx context.Context, tx pgx.Tx, d Dun) error
	// InviteLink makes the sign-in link of an invitation's mail. It is called
	// outside of transactions, by SendInvitation, which needs it.
	InviteLink func(ctx context.Context, link InviteLink) (address string, err error)
	// OnLeave follows a member who left or was removed.
	OnLeave func(ctx context.Context, tx pgx.Tx, teamID, userID uuid.UUID, now time.Time) error
	// OnDemote follows an admin whom another role was given.
	OnDemote func(ctx context.Context, tx pgx.Tx, teamID, userID uuid.UUID) error
}

// Deps is what the service stands on. Hooks that are nil are skipped; without
// Emails members show no address.
type Deps struct {
	Pool   *pgxpool.Pool
	Clock  *clock.Clock
	Jobs   job.Queue // takes SendInvitationJob
	Mail   mail.Sender
	Logger *slog.Logger
	Hooks  Hooks
}

// A Service carries out the use cases of teams.
type Service struct{ Deps }

// New returns the service.
func New(d Deps) *Service { return &Service{Deps: d} }
