package app

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/notice"
	"homeport.dev/homeport/internal/payment"
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

// tellEndingTx tells a team's admins what its pods will cost when the plan that
// was ended is over.
func (a *App) tellEndingTx(ctx context.Context, tx pgx.Tx, e payment.Ending) error {
	rates, err := a.pods.RatesTx(ctx, tx, e.TeamID)
	if err != nil {
		return err
	}
	return a.notices.PostTx(ctx, tx, notice.Notice{
		TeamID: e.TeamID, Kind: notice.PlanEnded, Key: strconv.FormatInt(e.At.UnixMicro(), 10), PostedAt: a.clock.Now(),
		Facts: notice.Facts{Spending: rates.Now, List: rates.List, Running: rates.Pods, EndsAt: &e.At},
	})
}
