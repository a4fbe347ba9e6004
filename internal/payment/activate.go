package payment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/wallet"
)

const sqlLockTeamOrder = `
select id, team_id, user_id, name, description, seats, seat_usd_micro, processor, status,
  coalesce(session_id, '') as session_id, coalesce(subscription_id, '') as subscription_id, expires_at, reads
from team_checkout where id = $1 for update`

// A teamOrder is a row of table team_checkout. It is locked before its team.
type teamOrder struct {
	ID             uuid.UUID     `db:"id"`
	TeamID         uuid.UUID     `db:"team_id"`
	UserID         uuid.UUID     `db:"user_id"`
	Name           string        `db:"name"`
	Description    string        `db:"description"`
	Seats          int           `db:"seats"`
	SeatPrice      money.USD     `db:"seat_usd_micro"`
	Processor      wallet.Source `db:"processor"`
	Status         string        `db:"status"`
	SessionID      string        `db:"session_id"`
	SubscriptionID string        `db:"subscription_id"`
	ExpiresAt      time.Time     `db:"expires_at"`
	Reads          int           `db:"reads"`
}

// plot is the team that the order is for.
func (t *teamOrder) plot() team.Plot {
	return team.Plot{TeamID: t.TeamID, By: t.UserID, Name: t.Name, Description: t.Description, Seats: t.Seats}
}

// lockTeamOrder returns nil for an order that is not ours.
func lockTeamOrder(ctx context.Context, tx pgx.Tx, order uuid.UUID) (*teamOrder, error) {
	rows, err := tx.Query(ctx, sqlLockTeamOrder, order)
	if err != nil {
		return nil, fmt.Errorf("lock team order %s: %w", order, err)
	}
	t, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[teamOrder])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("lock team order %s: %w", order, err)
	}
	return &t, nil
}

// applyTeam does what the checkout of a team asks for, whichever way it was
// learnt.
func (s *Service) applyTeam(ctx context.Context, tx pgx.Tx, session Session) (outcome string, err error) {
	t, err := lockTeamOrder(ctx, tx, session.OrderID)
	if err != nil {
		return "", err
	}
	switch {
	case t == nil:
		return ignored, nil
	case !t.fits(session, s.Processor.Source()):
		return refused, nil
	case session.Paid:
		return s.activate(ctx, tx, t, session)
	case session.Closed && t.Status == "open":
		return closed, s.release(ctx, tx, t)
	}
	return ignored, nil
}

// fits says whether a session is the one of this order, over its price.
func (t *teamOrder) fits(session Session, source wallet.Source) bool {
	return t.Processor == source &&
		(t.SessionID == "" || t.SessionID == session.ID) &&
		session.Amount == t.SeatPrice*money.USD(t.Seats) && session.Currency == "usd" &&
		(!session.Paid || session.SubscriptionID != "") &&
		(t.SubscriptionID == "" || !session.Paid || t.SubscriptionID == session.SubscriptionID)
}

const sqlPayTeamOrder = `
update team_checkout set status = 'paid', subscription_id = $2, session_id = $3, closed_at = $4, read_at = null
where id = $1`

const sqlInsertSubscription = `
insert into subscription (id, processor, team_id, user_id, seat_usd_micro, status, seats, read_at, created_at, updated_at)
values (@id, @processor, @team, @user, @price, 'active', @seats, @wall, @now, @now)`

// activate makes the team of a paid order, once. One that was given up is made
// too: the money is there. The subscription's details are read afterwards.
func (s *Service) activate(ctx context.Context, tx pgx.Tx, t *teamOrder, session Session) (string, error) {
	if t.Status == "paid" {
		return repeated, nil
	}
	now := s.Clock.Now()
	if _, err := tx.Exec(ctx, sqlPayTeamOrder, t.ID, session.SubscriptionID, session.ID, now); err != nil {
		return "", fmt.Errorf("close team order %s: %w", t.ID, err)
	}
	if err := s.Teams.ActivateTx(ctx, tx, t.plot(), session.SubscriptionID, now); err != nil {
		return "", err
	}
	_, err := tx.Exec(ctx, sqlInsertSubscription, pgx.NamedArgs{
		"id": session.SubscriptionID, "processor": t.Processor, "team": t.TeamID, "user": t.UserID, "price": t.SeatPrice,
		"seats": t.Seats, "wall": s.Clock.Wall(), "now": now,
	})
	if err != nil {
		return "", fmt.Errorf("record subscription %s of team %s: %w", session.SubscriptionID, t.TeamID, err)
	}
	return activated, s.Jobs.AddTx(ctx, tx, SubscriptionJob{ID: session.SubscriptionID}, job.Options{MaxAttempts: 1})
}

const sqlExpireTeamOrder = `
update team_checkout set status = 'expired', closed_at = $2, read_at = null where id = $1 and status = 'open'`

// release gives an order up that will not be paid, and takes its team away.
func (s *Service) release(ctx context.Context, tx pgx.Tx, t *teamOrder) error {
	if _, err := tx.Exec(ctx, sqlExpireTeamOrder, t.ID, s.Clock.Now()); err != nil {
		return fmt.Errorf("close team order %s: %w", t.ID, err)
	}
	return team.ReleaseTx(ctx, tx, t.TeamID)
}
