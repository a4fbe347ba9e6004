package app

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/team"
)

// followPlanTx gives what a team runs the prices of its new plan, and has its
// month looked at, now, against the new limit. The team is locked; pods are locked
// before the wallet.
func (a *App) followPlanTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, plan team.Plan, at time.Time) error {
	if err := a.pods.RepriceTx(ctx, tx, teamID, plan, at); err != nil {
		return err
	}
	return a.wallet.LookTx(ctx, tx, teamID, a.clock.Now())
}
