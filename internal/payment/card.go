package payment

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/audit"
	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
)

// ErrNoCard occurs for a team that has no saved card.
var ErrNoCard = fault.New(fault.NotFound, "no_saved_card", "This team has no saved card.")

// A Card is what may be shown of one that a processor keeps for a team.
type Card struct {
	ID       string `db:"id"`    // the processor's
	Brand    string `db:"brand"` // Stripe's word: visa, mastercard, …
	Last4    string `db:"last4"`
	ExpMonth int    `db:"exp_month"`
	ExpYear  int    `db:"exp_year"`
}

// Label names the card to its owner: "Visa ending in 4242".
func (c Card) Label() string {
	if c.Brand == "" {
		return "The card"
	}
	return strings.ToUpper(c.Brand[:1]) + strings.ReplaceAll(c.Brand[1:], "_", " ") + " ending in " + c.Last4
}

// A SavedCard is a team's card.
type SavedCard struct {
	Card
	UserID  uuid.UUID `db:"user_id"` // who saved it
	SavedAt time.Time `db:"saved_at"`
}

const sqlFindCard = `
select id, brand, last4, exp_month, exp_year, user_id, saved_at
from payment_card where team_id = $1 and processor = $2 and removed_at is null`

// findCard is nil for a team that has none.
func (s *Service) findCard(ctx context.Context, q pg.Querier, teamID uuid.UUID) (*SavedCard, error) {
	if s.Processor == nil {
		return nil, nil
	}
	rows, err := q.Query(ctx, sqlFindCard, teamID, s.Processor.Source())
	if err != nil {
		return nil, fmt.Errorf("find the card of team %s: %w", teamID, err)
	}
	card, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[SavedCard])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find the card of team %s: %w", teamID, err)
	}
	return &card, nil
}

// FindCard returns a team's saved card. The scope needs the right team.Manage,
// or to be of who saved the card. The faults are ErrNoCard and team.ErrForbidden.
func (s *Service) FindCard(ctx context.Context, scope team.Scope) (SavedCard, error) {
	card, err := s.findOwnCard(ctx, s.Pool, scope)
	if err != nil {
		return SavedCard{}, err
	}
	return *card, nil
}

// FindMyCard returns a team's saved card to who saved it, whatever their role now;
// nil: the team has none, or somebody else's.
func (s *Service) FindMyCard(ctx context.Context, scope team.Scope) (*SavedCard, error) {
	scope, err := scope.Require(team.Read)
	if err != nil {
		return nil, err
	}
	card, err := s.findCard(ctx, s.Pool, scope.TeamID())
	if err != nil || card == nil || card.UserID != scope.UserID() {
		return nil, err
	}
	return card, nil
}

// findOwnCard finds the card of a team for an admin, or for who saved it: it is
// theirs to take away when they are no admin any more.
func (s *Service) findOwnCard(ctx context.Context, q pg.Querier, scope team.Scope) (*SavedCard, error) {
	card, err := s.findCard(ctx, q, scope.TeamID())
	if err != nil {
		return nil, err
	}
	if card == nil || card.UserID != scope.UserID() {
		if _, err := scope.Require(team.Manage); err != nil {
			return nil, err
		}
	}
	if card == nil {
		return nil, ErrNoCard
	}
	return card, nil
}

const sqlRemoveCard = `
update payment_card set removed_at = $3, detach_at = $4
where team_id = $1 and removed_at is null and ($2::text is null or id = $2)
returning id`

// RemoveCard forgets a team's saved card and turns automatic top-ups off. The
// processor is asked to forget it once that is committed, until it has. The
// scope needs the right team.Manage, or to be of who saved the card: then the
// admins are told. The faults are ErrNoCard and those of team.LockTx.
func (s *Service) RemoveCard(ctx context.Context, scope team.Scope) error {
	scope, err := scope.Require(team.Read)
	if err != nil {
		return err
	}
	err = pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		scope, err := team.LockTx(ctx, tx, scope)
		if err != nil {
			return err
		}
		card, err := s.findOwnCard(ctx, tx, scope)
		if err != nil {
			return err
		}
		if err := s.takeAway(ctx, tx, scope, card); err != nil {
			return err
		}
		return audit.RecordTx(ctx, tx, audit.Entry{
			At: s.Clock.Now(), TeamID: scope.TeamID(), ActorID: scope.UserID(), Action: "team.card_remove", ObjectID: scope.TeamID(),
		})
	})
	if err != nil {
		return fmt.Errorf("remove the card of team %s: %w", scope.TeamID(), err)
	}
	return nil
}

// takeAway forgets a card for whoever of the scope asks for it.
func (s *Service) takeAway(ctx context.Context, tx pgx.Tx, scope team.Scope, card *SavedCard) error {
	a, err := findAuto(ctx, tx, sqlLockAuto, scope.TeamID())
	if err != nil {
		return err
	}
	told := a != nil && a.Enabled && !scope.IsAdmin()
	if told {
		if err := s.turnOff(ctx, tx, scope.TeamID(), OffCardRemoved); err != nil {
			return err
		}
	}
	if _, err := s.removeCards(ctx, tx, scope.TeamID()); err != nil || !told {
		return err
	}
	return s.tell(ctx, tx, a, News{Kind: NewsCardRemoved, Key: card.ID, Card: card.Card})
}

// LeaveTx tells the admins of a team that who saved its card has left. The card
// stays the team's, as its subscription does. The team is locked.
func (s *Service) LeaveTx(ctx context.Context, tx pgx.Tx, teamID, userID uuid.UUID) error {
	card, err := s.findCard(ctx, tx, teamID)
	if err != nil || card == nil || card.UserID != userID {
		return err
	}
	a, err := findAuto(ctx, tx, sqlFindAuto, teamID)
	if err != nil || a == nil || !a.Enabled {
		return err
	}
	return s.post(ctx, tx, a, News{Kind: NewsPayerLeft, Key: id.New().String(), Card: card.Card})
}

// DemoteTx tells who saved a team's card, and is no admin any more, that it stays
// the team's, and that it is theirs to take away. The team is locked.
func (s *Service) DemoteTx(ctx context.Context, tx pgx.Tx, teamID, userID uuid.UUID) error {
	card, err := s.findCard(ctx, tx, teamID)
	if err != nil || card == nil || card.UserID != userID {
		return err
	}
	a, err := findAuto(ctx, tx, sqlFindAuto, teamID)
	if err != nil {
		return err
	}
	if a == nil || !a.Enabled { // it pays nothing yet
		a = &autoRow{TeamID: teamID}
	}
	return s.post(ctx, tx, a, News{Kind: NewsPayerDemoted, Key: id.New().String(), Card: card.Card, To: userID})
}

// removeCards forgets whatever cards a team has, whose row is locked, and turns
// its automatic top-ups off. It says whether there was one.
func (s *Service) removeCards(ctx context.Context, tx pgx.Tx, teamID uuid.UUID) (bool, error) {
	if err := s.turnOff(ctx, tx, teamID, ""); err != nil {
		return false, err
	}
	rows, err := tx.Query(ctx, sqlRemoveCard, teamID, nil, s.Clock.Now(), s.Clock.Wall())
	if err != nil {
		return false, fmt.Errorf("forget the cards of team %s: %w", teamID, err)
	}
	gone, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return false, fmt.Errorf("forget the cards of team %s: %w", teamID, err)
	}
	for _, card := range gone {
		if err := s.Jobs.AddTx(ctx, tx, CardJob{DetachID: card}, job.Options{MaxAttempts: 1}); err != nil {
			return false, err
		}
	}
	return len(gone) > 0, nil
}

// A CardJob asks for one thing about a saved card at once: to read the checkout
// of an order, to read a card again, or to have a removed one forgotten.
type CardJob struct {
	OrderID  uuid.UUID `json:"order_id,omitzero"`
	ReadID   string    `json:"read_id,omitempty"`
	DetachID string    `json:"detach_id,omitempty"`
}

// Kind is the job's name in the queue.
func (CardJob) Kind() string { return "payment_card" }

// FollowCard does a CardJob. It may run twice; what fails is found again by
// ReadOpen.
func (s *Service) FollowCard(ctx context.Context, j CardJob) error {
	if s.Processor == nil {
		return nil
	}
	switch {
	case j.DetachID != "":
		return s.detach(ctx, j.DetachID)
	case j.ReadID != "":
		return s.readCard(ctx, j.ReadID)
	}
	return s.readSetup(ctx, j.OrderID)
}

const sqlListCardsToDetach = `
select id from payment_card where detach_at <= $1 and processor = $3 order by detach_at, id limit $2`

const sqlTakeDetach = `
update payment_card set detach_at = @wall::timestamptz + least(@longest::interval,
  @first::interval * power(2, least(detaches, 10))), detaches = detaches + 1
where id = @id and detach_at <= @wall and processor = @processor`

const sqlDetached = `update payment_card set detach_at = null where id = $1`

// detach asks the processor to forget a removed card.
func (s *Service) detach(ctx context.Context, cardID string) error {
	tag, err := s.Pool.Exec(ctx, sqlTakeDetach, pgx.NamedArgs{
		"id": cardID, "processor": s.Processor.Source(), "wall": s.Clock.Wall(), "first": firstRead, "longest": readLimit,
	})
	if err != nil {
		return fmt.Errorf("take card %s: %w", cardID, err)
	}
	if tag.RowsAffected() == 0 {
		return nil
	}
	if err := s.Processor.DetachCard(ctx, cardID); err != nil {
		return fmt.Errorf("detach card %s: %w", cardID, err)
	}
	if _, err := s.Pool.Exec(ctx, sqlDetached, cardID); err != nil {
		return fmt.Errorf("record that card %s is detached: %w", cardID, err)
	}
	return nil
}

const sqlNoteCard = `
update payment_card set read_at = $3 where id = $1 and processor = $2 and removed_at is null`

// noteCard has a card read because of an event: events come late and in any
// order, a reading is how the card stands.
func (s *Service) noteCard(ctx context.Context, tx pgx.Tx, cardID string) (string, error) {
	tag, err := tx.Exec(ctx, sqlNoteCard, cardID, s.Processor.Source(), s.Clock.Wall())
	if err != nil {
		return "", fmt.Errorf("note card %s: %w", cardID, err)
	}
	if tag.RowsAffected() == 0 {
		return ignored, nil
	}
	return noted, s.Jobs.AddTx(ctx, tx, CardJob{ReadID: cardID}, job.Options{MaxAttempts: 1})
}

const sqlListCardsToRead = `
select id from payment_card where removed_at is null and coalesce(read_at, '-infinity') <= $1 and processor = $3
order by coalesce(read_at, '-infinity'), id limit $2`

const sqlTakeCard = `
update payment_card set read_at = @next
where id = @id and processor = @processor and removed_at is null and coalesce(read_at, '-infinity') <= @wall`

const sqlRefreshCard = `
update payment_card set brand = @brand, last4 = @last4, exp_month = @month, exp_year = @year
where id = @id and removed_at is null and read_at = @next`

// readCard reads a saved card again, daily and when the processor tells of a
// change: its bank may have given it another number or expiry. One that the
// processor keeps no more is the team's no more. One that cannot be read is
// read again a day later. Of several readings at once, the last is kept.
func (s *Service) readCard(ctx context.Context, cardID string) error {
	wall := s.Clock.Wall()
	next := wall.Add(readDaily)
	taken, err := s.Pool.Exec(ctx, sqlTakeCard, pgx.NamedArgs{
		"id": cardID, "processor": s.Processor.Source(), "wall": wall, "next": next,
	})
	if err != nil {
		return fmt.Errorf("take card %s: %w", cardID, err)
	}
	if taken.RowsAffected() == 0 {
		return nil
	}
	card, kept, err := s.Processor.FindCard(ctx, cardID)
	if err != nil {
		return fmt.Errorf("read card %s: %w", cardID, err)
	}
	if !kept {
		return pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
			_, err := s.forgotten(ctx, tx, cardID)
			return err
		})
	}
	_, err = s.Pool.Exec(ctx, sqlRefreshCard, pgx.NamedArgs{
		"id": cardID, "brand": card.Brand, "last4": card.Last4, "month": card.ExpMonth, "year": card.ExpYear, "next": next,
	})
	if err != nil {
		return fmt.Errorf("refresh card %s: %w", cardID, err)
	}
	return nil
}

const sqlFindCardTeam = `select team_id from payment_card where id = $1 and processor = $2 and removed_at is null`

// forgotten follows a card that is gone from the processor, whoever removed it.
func (s *Service) forgotten(ctx context.Context, tx pgx.Tx, cardID string) (string, error) {
	var teamID uuid.UUID
	err := tx.QueryRow(ctx, sqlFindCardTeam, cardID, s.Processor.Source()).Scan(&teamID)
	if errors.Is(err, pgx.ErrNoRows) {
		return ignored, nil
	}
	if err != nil {
		return "", fmt.Errorf("find card %s: %w", cardID, err)
	}
	a, err := findAuto(ctx, tx, sqlLockAuto, teamID)
	if err != nil {
		return "", err
	}
	if err := s.turnOff(ctx, tx, teamID, OffCardRemoved); err != nil {
		return "", err
	}
	if _, err := tx.Exec(ctx, sqlRemoveCard, teamID, cardID, s.Clock.Now(), nil); err != nil {
		return "", fmt.Errorf("forget card %s: %w", cardID, err)
	}
	if a == nil || !a.Enabled {
		return closed, nil
	}
	card, err := findOldCard(ctx, tx, cardID)
	if err != nil {
		return "", err
	}
	return closed, s.tell(ctx, tx, a, News{Kind: NewsCardRemoved, Key: cardID, Card: card})
}
