package payment

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
)

const sqlFindCustomer = `select customer_id from payment_customer where team_id = $1 and processor = $2`

// The first customer of a team stays its customer, whoever else made one.
const sqlKeepCustomer = `
insert into payment_customer (team_id, processor, customer_id, created_at) values ($1, $2, $3, $4)
on conflict (team_id, processor) do nothing`

// customer finds what a team is to the processor, or has it made.
func (s *Service) customer(ctx context.Context, c Customer) (string, error) {
	known, err := s.findCustomer(ctx, c.TeamID)
	if known != "" || err != nil {
		return known, err
	}
	made, err := s.Processor.CreateCustomer(ctx, c)
	if err != nil {
		return "", err
	}
	if _, err := s.Pool.Exec(ctx, sqlKeepCustomer, c.TeamID, s.Processor.Source(), made, s.Clock.Now()); err != nil {
		return "", fmt.Errorf("keep the customer of team %s: %w", c.TeamID, err)
	}
	return s.findCustomer(ctx, c.TeamID)
}

// asCustomer asks for a checkout of a team's. One whose customer is gone from the
// processor, which a person may have deleted there, gets another one, once.
func (s *Service) asCustomer(ctx context.Context, c Customer, ask func(customer string) (Session, error)) (Session, error) {
	customer, err := s.customer(ctx, c)
	if err != nil {
		return Session{}, err
	}
	session, err := ask(customer)
	if !errors.Is(err, ErrNoCustomer) {
		return session, err
	}
	if err := s.loseCustomer(ctx, c.TeamID, customer); err != nil {
		return Session{}, err
	}
	c.Lost = customer
	if customer, err = s.customer(ctx, c); err != nil {
		return Session{}, err
	}
	return ask(customer)
}

const sqlDropCustomer = `delete from payment_customer where team_id = $1 and processor = $2 and customer_id = $3`

// loseCustomer forgets a customer that is gone from the processor, and its card,
// which is gone with it. Whoever comes second does nothing.
func (s *Service) loseCustomer(ctx context.Context, teamID uuid.UUID, customer string) error {
	err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		dropped, err := tx.Exec(ctx, sqlDropCustomer, teamID, s.Processor.Source(), customer)
		if err != nil || dropped.RowsAffected() == 0 {
			return err
		}
		card, err := s.findCard(ctx, tx, teamID)
		if err != nil || card == nil {
			return err
		}
		_, err = s.forgotten(ctx, tx, card.ID)
		return err
	})
	if err != nil {
		return fmt.Errorf("forget customer %s of team %s: %w", customer, teamID, err)
	}
	s.Logger.WarnContext(ctx, "a team's customer is gone from the payment processor", slog.String("team", teamID.String()), slog.String("customer", customer))
	return nil
}

// findCustomer is empty for a team that has none.
func (s *Service) findCustomer(ctx context.Context, teamID uuid.UUID) (known string, err error) {
	err = s.Pool.QueryRow(ctx, sqlFindCustomer, teamID, s.Processor.Source()).Scan(&known)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return "", fmt.Errorf("find the customer of team %s: %w", teamID, err)
	}
	return known, nil
}

// Portal is the processor's page on which a team changes its cards and finds
// its invoices. The scope needs the right team.Manage. The faults are
// ErrNotSetUp, ErrNoPortal and ErrUnavailable.
func (s *Service) Portal(ctx context.Context, scope team.Scope) (string, error) {
	if s.Processor == nil {
		return "", ErrNotSetUp
	}
	if _, err := scope.Require(team.Manage); err != nil {
		return "", err
	}
	customer, err := s.findCustomer(ctx, scope.TeamID())
	if err != nil {
		return "", err
	}
	if customer == "" {
		return "", ErrNoPortal
	}
	address, err := s.Processor.PortalURL(ctx, customer, s.PublicURL+"/billing?team_id="+scope.TeamID().String())
	if errors.Is(err, ErrNoCustomer) {
		return "", ErrNoPortal.Because(err)
	}
	if fault.Of(err) != nil {
		return "", err
	}
	if err != nil {
		return "", ErrUnavailable.Because(err)
	}
	return address, nil
}
