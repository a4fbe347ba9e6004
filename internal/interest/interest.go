// Package interest owns which teams wait for which product that is not there
// yet.
//
// What always holds: a team waits for a product once, whoever of its members
// said so, and any of them may withdraw it. Telling them when a product opens
// is left to whoever opens it.
package interest

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"homeport.dev/homeport/internal/audit"
	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
)

// ErrProduct occurs for a product that nobody can wait for.
var ErrProduct = fault.New(fault.Invalid, "interest_product", "There is no such product to wait for.")

// A Product is something that teams can wait for.
type Product string

// The products.
const (
	BatchInference    Product = "batch-inference"
	MultiNodeClusters Product = "multi-node-clusters"
)

func (p Product) check() error {
	switch p {
	case BatchInference, MultiNodeClusters:
		return nil
	}
	return ErrProduct
}

// Deps is what the service stands on.
type Deps struct {
	Pool  *pgxpool.Pool
	Clock *clock.Clock
}

// A Service keeps what teams wait for.
type Service struct{ Deps }

// New returns the service.
func New(d Deps) *Service { return &Service{Deps: d} }

const sqlFindInterest = `
select exists (select from product_interest where team_id = $1 and product = $2)`

// Find says whether the team waits for a product. The fault is ErrProduct.
func (s *Service) Find(ctx context.Context, scope team.Scope, product Product) (bool, error) {
	if err := product.check(); err != nil {
		return false, err
	}
	var waits bool
	if err := s.Pool.QueryRow(ctx, sqlFindInterest, scope.TeamID(), product).Scan(&waits); err != nil {
		return false, fmt.Errorf("find the interest of team %s: %w", scope.TeamID(), err)
	}
	return waits, nil
}

// Set notes that the team waits for a product, or does not any more, and
// returns what holds then. Any member may say so; saying it again changes
// nothing. The faults are ErrProduct and those of team.LockTx.
func (s *Service) Set(ctx context.Context, scope team.Scope, product Product, waits bool, once idem.Request) (bool, error) {
	if err := product.check(); err != nil {
		return false, err
	}
	scope, err := scope.Require(team.Read)
	if err != nil {
		return false, err
	}
	var now bool
	err = pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		scope, err := team.LockTx(ctx, tx, scope)
		if err != nil {
			return err
		}
		now, err = idem.RunTx(ctx, tx, once, func() (bool, error) {
			return waits, setTx(ctx, tx, scope.TeamID(), scope.UserID(), product, waits, s.Clock.Now())
		})
		return err
	})
	return now, err
}

const sqlInsertInterest = `
insert into product_interest (team_id, product, user_id, created_at) values ($1, $2, $3, $4)
on conflict (team_id, product) do nothing`

const sqlDeleteInterest = `delete from product_interest where team_id = $1 and product = $2`

func setTx(ctx context.Context, tx pgx.Tx, teamID, userID uuid.UUID, product Product, waits bool, now time.Time) error {
	action, sql, args := "interest.withdraw", sqlDeleteInterest, []any{teamID, product}
	if waits {
		action, sql, args = "interest.set", sqlInsertInterest, []any{teamID, product, userID, now}
	}
	tag, err := tx.Exec(ctx, sql, args...)
	if err != nil {
		return fmt.Errorf("note the interest of team %s: %w", teamID, err)
	}
	if tag.RowsAffected() == 0 {
		return nil
	}
	return audit.RecordTx(ctx, tx, audit.Entry{
		At: now, TeamID: teamID, ActorID: userID, Action: action, Detail: map[string]any{"product": product},
	})
}
