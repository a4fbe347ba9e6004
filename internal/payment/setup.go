package payment

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/audit"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/wallet"
)

// A CardOrder asks a processor for a checkout that saves a card and charges
// nothing.
type CardOrder struct {
	ID         uuid.UUID // also the idempotency key
	TeamID     uuid.UUID
	Email      string // of who saves it
	CustomerID string // of the team, from CreateCustomer
	SuccessURL string
	CancelURL  string
}

const sqlInsertSetup = `
insert into card_setup (id, team_id, user_id, processor, status, created_at, opened_at, read_at)
values (@id, @team, @user, @processor, 'open', @now, @wall, @read)`

const sqlSetSetupSession = `update card_setup set session_id = coalesce(session_id, $2) where id = $1 returning session_id`

// CheckoutCard opens a checkout that saves a card for automatic top-ups, and
// returns the address that the payer goes to. A request repeated under its
// Idempotency-Key gets the checkout of the first one. The scope needs the right
// team.Manage. The faults are ErrNotSetUp, ErrUnavailable, ErrOutdated and
// those of team.LockTx and idem.RunTx.
func (s *Service) CheckoutCard(ctx context.Context, scope team.Scope, once idem.Request) (string, error) {
	scope, err := scope.Require(team.Manage)
	if err != nil {
		return "", err
	}
	if s.Processor == nil {
		return "", ErrNotSetUp
	}
	back := s.PublicURL + "/billing?team_id=" + scope.TeamID().String() + "&card="
	o := CardOrder{TeamID: scope.TeamID(), Email: scope.Email(), SuccessURL: back + "saved", CancelURL: back + "cancel"}
	err = pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		if _, err := team.LockTx(ctx, tx, scope); err != nil {
			return err
		}
		var err error
		o.ID, err = idem.RunTx(ctx, tx, once, func() (uuid.UUID, error) {
			order := id.New()
			return order, s.orderCard(ctx, tx, order, scope)
		})
		return err
	})
	if err != nil {
		return "", fmt.Errorf("order a card for team %s: %w", o.TeamID, err)
	}
	return s.open(ctx, o.ID, sqlSetSetupSession, func() (Session, error) {
		return s.asCustomer(ctx, Customer{TeamID: o.TeamID, Email: o.Email}, func(customer string) (Session, error) {
			o.CustomerID = customer
			return s.Processor.CreateCardSetup(ctx, o)
		})
	})
}

// orderCard writes an order to keep the card of a checkout. A top-up that saves
// its card has one under the same id.
func (s *Service) orderCard(ctx context.Context, tx pgx.Tx, order uuid.UUID, scope team.Scope) error {
	wall := s.Clock.Wall()
	_, err := tx.Exec(ctx, sqlInsertSetup, pgx.NamedArgs{
		"id": order, "team": scope.TeamID(), "user": scope.UserID(), "processor": s.Processor.Source(),
		"now": s.Clock.Now(), "wall": wall, "read": wall.Add(firstRead),
	})
	return err
}

const sqlLockSetup = `
select id, team_id, user_id, processor, status, coalesce(session_id, '') as session_id, opened_at, reads
from card_setup where id = $1 for update`

// A setup is a row of table card_setup.
type setup struct {
	ID        uuid.UUID     `db:"id"`
	TeamID    uuid.UUID     `db:"team_id"`
	UserID    uuid.UUID     `db:"user_id"`
	Processor wallet.Source `db:"processor"`
	Status    string        `db:"status"`
	SessionID string        `db:"session_id"`
	OpenedAt  time.Time     `db:"opened_at"`
	Reads     int           `db:"reads"`
}

// lockSetup is nil for an order that does not exist.
func lockSetup(ctx context.Context, tx pgx.Tx, order uuid.UUID) (*setup, error) {
	rows, err := tx.Query(ctx, sqlLockSetup, order)
	if err != nil {
		return nil, fmt.Errorf("lock card order %s: %w", order, err)
	}
	t, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[setup])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("lock card order %s: %w", order, err)
	}
	return &t, nil
}

const sqlNoteSetup = `update card_setup set session_id = $2, read_at = $3 where id = $1 and status = 'open'`

// noteSetup has the checkout of a card read at once: an event does not carry
// the card.
func (s *Service) noteSetup(ctx context.Context, tx pgx.Tx, session Session) (string, error) {
	t, err := lockSetup(ctx, tx, session.OrderID)
	if err != nil {
		return "", err
	}
	switch {
	case t == nil:
		return ignored, nil
	case t.Processor != s.Processor.Source() || t.SessionID != "" && t.SessionID != session.ID:
		return refused, nil
	case t.Status != "open":
		return repeated, nil
	}
	if _, err := tx.Exec(ctx, sqlNoteSetup, t.ID, session.ID, s.Clock.Wall()); err != nil {
		return "", fmt.Errorf("note card order %s: %w", t.ID, err)
	}
	return noted, s.Jobs.AddTx(ctx, tx, CardJob{OrderID: t.ID}, job.Options{MaxAttempts: 1})
}

// notePaidCard does the same for a top-up that is paid; most save no card.
func (s *Service) notePaidCard(ctx context.Context, tx pgx.Tx, session Session) error {
	noted, err := tx.Exec(ctx, sqlNoteSetup, session.OrderID, session.ID, s.Clock.Wall())
	if err != nil {
		return fmt.Errorf("note card order %s: %w", session.OrderID, err)
	}
	if noted.RowsAffected() == 0 {
		return nil
	}
	return s.Jobs.AddTx(ctx, tx, CardJob{OrderID: session.OrderID}, job.Options{MaxAttempts: 1})
}

const sqlListSetupsToRead = `
select id from card_setup where read_at <= $1 and processor = $3 order by read_at, id limit $2`

const sqlReadSetupAgain = `update card_setup set read_at = $2, reads = reads + 1 where id = $1 and status = 'open'`

const sqlCloseSetup = `
update card_setup set status = $2, card_id = $3, closed_at = $4, read_at = null where id = $1 and status = 'open'`

// readSetup moves the order's next read on, asks the processor without a lock,
// and keeps the card that was saved.
func (s *Service) readSetup(ctx context.Context, order uuid.UUID) error {
	var t *setup
	wall := s.Clock.Wall()
	err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) (err error) {
		if t, err = lockSetup(ctx, tx, order); err != nil || t == nil || t.Status != "open" {
			return err
		}
		if wall.Sub(t.OpenedAt) > abandoned && t.SessionID == "" {
			t.Status = "failed"
			_, err = tx.Exec(ctx, sqlCloseSetup, order, t.Status, nil, s.Clock.Now())
			return err
		}
		_, err = tx.Exec(ctx, sqlReadSetupAgain, order, wall.Add(pauseAfter(t.Reads)))
		return err
	})
	if err != nil || t == nil || t.Status != "open" || t.SessionID == "" || t.Processor != s.Processor.Source() {
		return err
	}
	session, card, err := s.Processor.ReadCard(ctx, t.SessionID)
	if err != nil {
		return fmt.Errorf("read the card of checkout %s: %w", t.SessionID, err)
	}
	return pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error { return s.keep(ctx, tx, t, session, card) })
}

const sqlLockCard = `select team_id = $2 and removed_at is null from payment_card where id = $1 for update`

const sqlReplaceCard = `
update payment_card set removed_at = $3, detach_at = $4 where team_id = $1 and removed_at is null and id <> $2`

const sqlSaveCard = `
insert into payment_card (id, team_id, processor, user_id, brand, last4, exp_month, exp_year, saved_at, read_at)
values (@id, @team, @processor, @user, @brand, @last4, @month, @year, @now, @read)
on conflict (id) do update set user_id = excluded.user_id, brand = excluded.brand, last4 = excluded.last4,
  exp_month = excluded.exp_month, exp_year = excluded.exp_year, saved_at = excluded.saved_at, read_at = excluded.read_at`

const sqlTryNewCard = `
update auto_topup set failures = 0, due_at = $2, waits = null, news = null, updated_at = $2 where team_id = $1 and enabled`

// keep makes a card that was saved the team's, instead of the one it had. The
// card of a team that has ended meanwhile is forgotten again.
func (s *Service) keep(ctx context.Context, tx pgx.Tx, of *setup, session Session, card Card) error {
	if err := team.LockRowTx(ctx, tx, of.TeamID); err != nil {
		return err
	}
	t, err := lockSetup(ctx, tx, of.ID)
	if err != nil || t == nil || t.Status != "open" {
		return err
	}
	now := s.Clock.Now()
	switch {
	case session.OrderID != t.ID || session.ID != t.SessionID:
		s.Logger.ErrorContext(ctx, "a checkout is not that of its card order", slog.String("order", t.ID.String()))
		return nil
	case card.ID == "" && session.Closed:
		_, err := tx.Exec(ctx, sqlCloseSetup, t.ID, "expired", nil, now)
		return err
	case card.ID == "" && session.Paid: // with something that is no card
		_, err := tx.Exec(ctx, sqlCloseSetup, t.ID, "failed", nil, now)
		return err
	case card.ID == "":
		return nil
	}
	kept, err := s.replace(ctx, tx, t, card, now)
	if err != nil {
		return fmt.Errorf("keep card %s of team %s: %w", card.ID, t.TeamID, err)
	}
	if !kept {
		return nil
	}
	if active, err := s.isActive(ctx, tx, t.TeamID); err != nil || !active {
		if err == nil {
			_, err = s.removeCards(ctx, tx, t.TeamID)
		}
		return err
	}
	if _, err := tx.Exec(ctx, sqlTryNewCard, t.TeamID, now); err != nil {
		return fmt.Errorf("try card %s of team %s: %w", card.ID, t.TeamID, err)
	}
	return audit.RecordTx(ctx, tx, audit.Entry{
		At: now, TeamID: t.TeamID, ActorID: t.UserID, Action: "team.card_save", ObjectID: t.TeamID,
		Detail: map[string]any{"last4": card.Last4},
	})
}

// replace writes a team's new card and has the one before forgotten. The card
// that the team has already stays, and is now kept by who saved it last. One
// that was removed while its checkout was open is not taken back: the processor
// is about to forget it. It says whether the card is the team's.
func (s *Service) replace(ctx context.Context, tx pgx.Tx, t *setup, card Card, now time.Time) (bool, error) {
	var kept bool
	err := tx.QueryRow(ctx, sqlLockCard, card.ID, t.TeamID).Scan(&kept)
	if err == nil && !kept {
		_, err = tx.Exec(ctx, sqlCloseSetup, t.ID, "failed", nil, now)
		return false, err
	}
	if err != nil && !errors.Is(err, pgx.ErrNoRows) { // without a row it is a new one
		return false, err
	}
	if _, err := tx.Exec(ctx, sqlReplaceCard, t.TeamID, card.ID, now, s.Clock.Wall()); err != nil {
		return false, err
	}
	_, err = tx.Exec(ctx, sqlSaveCard, pgx.NamedArgs{
		"id": card.ID, "team": t.TeamID, "processor": t.Processor, "user": t.UserID, "brand": card.Brand, "last4": card.Last4,
		"month": card.ExpMonth, "year": card.ExpYear, "now": now, "read": s.Clock.Wall().Add(readDaily),
	})
	if err != nil {
		return false, err
	}
	_, err = tx.Exec(ctx, sqlCloseSetup, t.ID, "saved", card.ID, now)
	return err == nil, err
}

func (s *Service) isActive(ctx context.Context, tx pgx.Tx, teamID uuid.UUID) (bool, error) {
	_, err := s.Teams.NameTx(ctx, tx, teamID)
	if errors.Is(err, team.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
