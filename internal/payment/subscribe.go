package payment

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
)

// SeatPrice is what one seat of a Pro team costs each month.
const SeatPrice = 100 * money.Dollar

// TeamLifetime is how long a new team waits for its payment, in business time.
const TeamLifetime = 24 * time.Hour

// A TeamRequest is a new team as a person wrote it.
type TeamRequest struct {
	Name        string
	Description string
	Members     string // a whole number
}

// teamOrderIDs is what a request repeated under its key gets back.
type teamOrderIDs struct {
	Order, Team uuid.UUID
}

const sqlInsertTeamOrder = `
insert into team_checkout (id, team_id, user_id, name, description, seats, seat_usd_micro, processor, status,
  created_at, expires_at, opened_at, seen_at, read_at)
values (@id, @team, @user, @name, @description, @seats, @price, @processor, 'open', @now, @expires, @wall, @wall, @read)`

const sqlSetTeamSession = `update team_checkout set session_id = coalesce(session_id, $2) where id = $1 returning session_id`

// CheckoutTeam opens a checkout over the monthly subscription of a new team
// and returns the address that the payer goes to. The team is reserved at
// once, seen by nobody, and becomes theirs when it is paid. A request repeated
// under its Idempotency-Key gets the checkout of the first one. The faults are
// ErrNotSetUp, ErrUnavailable and those of team.NewPlot and idem.RunTx.
func (s *Service) CheckoutTeam(ctx context.Context, by team.Person, r TeamRequest, once idem.Request) (string, error) {
	if s.Processor == nil {
		return "", ErrNotSetUp
	}
	plot, err := team.NewPlot(id.New(), by.ID, r.Name, r.Description, r.Members)
	if err != nil {
		return "", err
	}
	var ids teamOrderIDs
	err = pg.InTx(ctx, s.Pool, func(tx pgx.Tx) (err error) {
		ids, err = idem.RunTx(ctx, tx, once, func() (teamOrderIDs, error) { return s.orderTeam(ctx, tx, plot) })
		return err
	})
	if err != nil {
		return "", fmt.Errorf("order a team for user %s: %w", by.ID, err)
	}
	o := TeamOrder{
		ID: ids.Order, TeamID: ids.Team, TeamName: plot.Name, Email: by.Email, Seats: plot.Seats, SeatPrice: SeatPrice,
		SuccessURL: s.PublicURL + "/billing?team_id=" + ids.Team.String() + "&subscribe=success",
		CancelURL:  s.PublicURL + "/create-team",
	}
	return s.open(ctx, o.ID, sqlSetTeamSession, func() (Session, error) {
		return s.asCustomer(ctx, Customer{TeamID: o.TeamID, Email: o.Email}, func(customer string) (Session, error) {
			o.CustomerID = customer
			return s.Processor.CreateSubscription(ctx, o)
		})
	})
}

// orderTeam reserves a team together with its order.
func (s *Service) orderTeam(ctx context.Context, tx pgx.Tx, plot team.Plot) (teamOrderIDs, error) {
	now, wall := s.Clock.Now(), s.Clock.Wall()
	ids := teamOrderIDs{Order: id.New(), Team: plot.TeamID}
	if err := team.ReserveTx(ctx, tx, plot, now, now.Add(TeamLifetime)); err != nil {
		return ids, err
	}
	_, err := tx.Exec(ctx, sqlInsertTeamOrder, pgx.NamedArgs{
		"id": ids.Order, "team": plot.TeamID, "user": plot.By, "name": plot.Name, "description": plot.Description,
		"seats": plot.Seats, "price": SeatPrice, "processor": s.Processor.Source(),
		"now": now, "expires": now.Add(TeamLifetime), "wall": wall, "read": wall.Add(firstRead),
	})
	return ids, err
}
