package team

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/mail"
	"homeport.dev/homeport/internal/pg"
)

// A SendInvitationJob asks for the mail of an invitation.
type SendInvitationJob struct {
	InvitationID uuid.UUID `json:"invitation_id"`
}

// Kind is the job's name in the queue.
func (SendInvitationJob) Kind() string { return "team.send_invitation" }

func (s *Service) queueLetter(ctx context.Context, tx pgx.Tx, invitationID uuid.UUID) error {
	return s.Jobs.AddTx(ctx, tx, SendInvitationJob{InvitationID: invitationID}, job.Options{MaxAttempts: mail.Attempts})
}

// An InviteLink is what the link of an invitation's mail is made for.
type InviteLink struct {
	InvitationID uuid.UUID
	Email        string
	For          time.Duration // how long the invitation still waits
}

const sqlFindUnsentInvitation = `
select i.id, i.email, i.expires_at, i.invited_by, t.name as team_name
from invitation i join team t on t.id = i.team_id
where i.id = $1 and i.state = 'pending' and i.expires_at > $2 and t.state = 'active' and t.plan = 'pro'`

type unsentInvitation struct {
	ID        uuid.UUID
	Email     string
	ExpiresAt time.Time
	InvitedBy uuid.UUID
	TeamName  string
	inviter   string // address
}

// SendInvitation sends the mail of an invitation, unless it waits no more. It
// may run twice: the mail then has the same key. The fault mail.ErrUnavailable
// means that it should run again.
func (s *Service) SendInvitation(ctx context.Context, args SendInvitationJob) error {
	now := s.Clock.Now()
	inv, err := s.findUnsent(ctx, args.InvitationID, now)
	if errors.Is(err, ErrInvitationNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	link, err := s.Hooks.InviteLink(ctx, InviteLink{InvitationID: inv.ID, Email: inv.Email, For: inv.ExpiresAt.Sub(now)})
	if err != nil {
		return fmt.Errorf("make the link of invitation %s: %w", inv.ID, err)
	}
	letter, subject := inv.letter(link)
	return mail.Deliver(ctx, s.Mail, s.Logger, letter, inv.Email, subject, "invitation-"+inv.ID.String())
}

func (s *Service) findUnsent(ctx context.Context, invitationID uuid.UUID, now time.Time) (inv unsentInvitation, err error) {
	err = pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sqlFindUnsentInvitation, invitationID, now)
		if err != nil {
			return fmt.Errorf("find invitation %s: %w", invitationID, err)
		}
		inv, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[unsentInvitation])
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrInvitationNotFound
		}
		if err != nil {
			return fmt.Errorf("find invitation %s: %w", invitationID, err)
		}
		inv.inviter, err = s.EmailTx(ctx, tx, inv.InvitedBy)
		return err
	})
	return inv, err
}

// letter writes the mail of an invitation. Its text part has exactly one URL.
func (inv unsentInvitation) letter(link string) (l mail.Layout, subject string) {
	name, who := mail.Harmless(inv.TeamName, "a team"), inv.inviter
	if who == "" {
		who = "Somebody"
	}
	return mail.Layout{
		Title: "Join " + name + " on Homeport",
		Paragraphs: []string{
			who + " invited you to the team " + mail.Harmless(inv.TeamName, "with a web address for a name") +
				". On Homeport its members rent cloud GPUs together and pay from one wallet.",
			"Sign in as " + inv.Email + " to join. The link works once, until " + inv.ExpiresAt.Format("2 January 2006, 15:04") + " UTC.",
		},
		Action: &mail.Action{Label: "Sign in and join", URL: link},
		Footnotes: []string{
			"Any other way to sign in with this address accepts the invitation, too, as long as it is open and the team has a seat free.",
			"If you do not know who invited you, ignore this mail: without the link nothing happens.",
		},
	}, "Join " + mail.Cut(name, 40) + " on Homeport"
}
