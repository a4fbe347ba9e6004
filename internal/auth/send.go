package auth

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/mail"
	"homeport.dev/homeport/internal/pg"
)

// A SendLinkJob asks for the mail of one link.
type SendLinkJob struct {
	LinkID uuid.UUID `json:"link_id"`
}

// Kind is the job's name in the queue.
func (SendLinkJob) Kind() string { return "auth.send_link" }

// An unsentLink is a link whose mail is still owed.
type unsentLink struct {
	ID          uuid.UUID `db:"id"`
	SealedToken []byte    `db:"sealed_token"`
	Email       string    `db:"email"`
	MayCreate   bool      `db:"may_create"`
	RedirectTo  string    `db:"redirect_to"`
	IP          string    `db:"ip"`
	UserAgent   string    `db:"user_agent"`
	RequestedAt time.Time `db:"requested_at"`
	ExpiresAt   time.Time `db:"expires_at"`
}

// SendLink sends the mail of a link, unless that was done, the link is over or
// its address may not sign in. It may run twice: the mail then has the same
// key. The fault mail.ErrUnavailable means that it should run again.
func (s *Service) SendLink(ctx context.Context, args SendLinkJob) error {
	link, err := s.takeUnsent(ctx, args.LinkID)
	if err != nil || link.SealedToken == nil {
		return err
	}
	token, err := s.Box.Open(link.SealedToken, linkPurpose(link.ID))
	if err != nil {
		return fmt.Errorf("open the token of link %s: %w", link.ID, err)
	}
	letter, err := s.letter(link, string(token))
	if err != nil {
		return err
	}
	err = s.Mail.Send(ctx, letter)
	if errors.Is(err, mail.ErrRefused) {
		s.Logger.WarnContext(ctx, "sign-in mail refused", "link_id", link.ID, "error", err)
		return s.endLink(ctx, link.ID)
	}
	if err != nil {
		return fmt.Errorf("send the mail of link %s: %w", link.ID, err)
	}
	if _, err := s.Pool.Exec(ctx, sqlMarkSent, link.ID, s.Clock.Wall()); err != nil {
		return fmt.Errorf("mark link %s as sent: %w", link.ID, err)
	}
	return nil
}

const sqlFindUnsentLink = `
	select id, sealed_token, email, may_create, redirect_to, ip, user_agent, requested_at, expires_at
	from auth_link
	where id = $1 and sealed_token is not null and used_at is null and ended_at is null and expires_at > $2`

// takeUnsent returns the link, or one without a token when nothing is to be
// sent: then its row forgets the token too.
func (s *Service) takeUnsent(ctx context.Context, id uuid.UUID) (unsentLink, error) {
	var link unsentLink
	var allowed bool
	err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sqlFindUnsentLink, id, s.Clock.Wall())
		if err != nil {
			return fmt.Errorf("find link %s: %w", id, err)
		}
		link, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[unsentLink])
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("find link %s: %w", id, err)
		}
		allowed, err = s.maySignInTx(ctx, tx, link.Email, link.MayCreate)
		return err
	})
	if err != nil || allowed {
		return link, err
	}
	return unsentLink{}, s.endLink(ctx, id)
}

const sqlMarkSent = `update auth_link set sealed_token = null, sent_at = coalesce(sent_at, $2) where id = $1`

const sqlEndLink = `
	update auth_link set sealed_token = null, ended_at = case when used_at is null then coalesce(ended_at, $2) end
	where id = $1 and (sent_at is null or sealed_token is not null)`

// endLink makes a link that nobody was sent useless.
func (s *Service) endLink(ctx context.Context, id uuid.UUID) error {
	if _, err := s.Pool.Exec(ctx, sqlEndLink, id, s.Clock.Wall()); err != nil {
		return fmt.Errorf("end link %s: %w", id, err)
	}
	return nil
}

// letter writes the sign-in mail. Its text part has exactly one URL.
func (s *Service) letter(link unsentLink, token string) (mail.Message, error) {
	minutes := int(link.ExpiresAt.Sub(link.RequestedAt) / time.Minute)
	m, err := mail.Layout{
		Title: "Sign in to Homeport",
		Paragraphs: []string{
			"You asked to sign in as " + link.Email + ".",
			fmt.Sprintf("The link works once, within %d minutes of your request.", minutes),
		},
		Action: &mail.Action{Label: "Sign in", URL: s.linkAddress(token, "magiclink", link.RedirectTo)},
		Footnotes: []string{
			"Asked for from " + DescribeAgent(link.UserAgent) + ", network address " + link.IP + ".",
			"If this was not you, ignore this mail: without the link nobody gets in.",
		},
	}.Message(link.Email, "Sign in to Homeport", "sign-in-"+link.ID.String())
	if fault.Of(err) == nil && err != nil {
		return mail.Message{}, fmt.Errorf("write the mail of link %s: %w", link.ID, err)
	}
	return m, err
}
