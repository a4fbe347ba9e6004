package offer

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/team"
)

type cache struct{}

var errTODO = errors.New("offer: not written yet")

// Refresh asks every adapter that is due.
func (s *Service) Refresh(ctx context.Context) error { return errTODO }

// Resources returns what is visible, by GPU type, at the prices of a plan.
func (s *Service) Resources(ctx context.Context, plan team.Plan) (map[string][]Priced, string, error) {
	return nil, "", errTODO
}

// ResourcesJSON returns Resources as the API writes it.
func (s *Service) ResourcesJSON(ctx context.Context, plan team.Plan) (body []byte, etag string, err error) {
	return nil, "", errTODO
}

// QuoteTx turns an ask into a binding quote.
func (s *Service) QuoteTx(ctx context.Context, tx pgx.Tx, ask Ask) (Quote, error) {
	return Quote{}, errTODO
}

// EqualTx lists the offers that may stand in for another one, the cheapest first.
func (s *Service) EqualTx(ctx context.Context, tx pgx.Tx, orig provider.Offer, plan team.Plan, max money.Rate, exclude []Tuple) ([]Quote, error) {
	return nil, errTODO
}

// AlternativesTx names in a sentence what could be rented instead of a tuple.
func (s *Service) AlternativesTx(ctx context.Context, tx pgx.Tx, t Tuple, plan team.Plan) (string, error) {
	return "", errTODO
}

// MarkSoldOut takes a tuple off sale for a while.
func (s *Service) MarkSoldOut(ctx context.Context, t Tuple, wall time.Time) error { return errTODO }

// Suspend takes all offers of an adapter off sale until then.
func (s *Service) Suspend(ctx context.Context, adapter string, until time.Time) error { return errTODO }
