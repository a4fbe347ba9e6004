package pod

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/offer"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/wallet"
)

const sqlListToReprice = `
select id, rate_usd_micro_per_hour, list_rate_usd_micro_per_hour from pod
 where team_id = $1 and status in ('pending', 'starting', 'mounting', 'ready')
 order by id`

// The maximum follows: a set-up that tries an equal offer pays no more than the
// plan's price of the chosen one.
const sqlReprice = `
update pod
   set rate_usd_micro_per_hour = $2,
       max_rate_usd_micro_per_hour = greatest(max_rate_usd_micro_per_hour, $2)
 where id = $1`

type pricedRow struct {
	ID       uuid.UUID  `db:"id"`
	Rate     money.Rate `db:"rate_usd_micro_per_hour"`
	ListRate money.Rate `db:"list_rate_usd_micro_per_hour"`
}

const sqlSumRates = `
select coalesce(sum(rate_usd_micro_per_hour), 0)::bigint as now, coalesce(sum(list_rate_usd_micro_per_hour), 0)::bigint as list, count(*) as pods
from pod where team_id = $1 and status in ('pending', 'starting', 'mounting', 'ready')`

// Rates are what a team's pods cost per hour together.
type Rates struct {
	Now  money.Rate `db:"now"`
	List money.Rate `db:"list"` // at list prices
	Pods int        `db:"pods"`
}

// RatesTx sums up what a team's pods cost.
func (s *Service) RatesTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID) (Rates, error) {
	rows, err := tx.Query(ctx, sqlSumRates, teamID)
	if err != nil {
		return Rates{}, fmt.Errorf("sum the rates of team %s: %w", teamID, err)
	}
	sum, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Rates])
	if err != nil {
		return Rates{}, fmt.Errorf("sum the rates of team %s: %w", teamID, err)
	}
	return sum, nil
}

// RepriceTx gives a team's pods the price of another plan from an instant on,
// out of the list price that was theirs when they were made: what a cloud asks
// today changes nothing (server rule 2). The team is locked.
func (s *Service) RepriceTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, plan team.Plan, at time.Time) error {
	if err := s.LockTeamTx(ctx, tx, teamID); err != nil {
		return fmt.Errorf("lock the pods of team %s: %w", teamID, err)
	}
	rows, err := tx.Query(ctx, sqlListToReprice, teamID)
	if err != nil {
		return fmt.Errorf("list the pods of team %s: %w", teamID, err)
	}
	pods, err := pgx.CollectRows(rows, pgx.RowToStructByName[pricedRow])
	if err != nil {
		return fmt.Errorf("list the pods of team %s: %w", teamID, err)
	}
	for _, p := range pods {
		rate := offer.PlanPrice(p.ListRate, plan)
		if rate == p.Rate {
			continue
		}
		if _, err := tx.Exec(ctx, sqlReprice, p.ID, rate); err != nil {
			return fmt.Errorf("reprice pod %s: %w", p.ID, err)
		}
		// One that is not ready yet starts its meter at the new rate.
		if err := s.Wallet.RerateTx(ctx, tx, p.ID, rate, at); err != nil && !errors.Is(err, wallet.ErrNotMetered) {
			return fmt.Errorf("reprice pod %s: %w", p.ID, err)
		}
	}
	return nil
}
