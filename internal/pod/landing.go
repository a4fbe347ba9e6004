package pod

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/agentapi"
)

// landing is what the agent tells the people in a pod about its end. The agent
// lives by wall time, money by business time.
func (s *Service) landing(ctx context.Context, p *Pod) (*agentapi.Landing, error) {
	if p.Status != Ready {
		return nil, nil
	}
	l, err := s.Wallet.LandingOf(ctx, s.Pool, p.TeamID, s.Clock.Now())
	if err != nil || l == nil {
		return nil, err
	}
	reason := agentapi.LandsOnBalance
	if l.Limit {
		reason = agentapi.LandsOnLimit
	}
	return &agentapi.Landing{
		At: l.At.Add(-s.Clock.Offset()).Truncate(time.Second), Reason: reason,
		URL: s.AgentURL + "/billing?team_id=" + p.TeamID.String(),
	}, nil
}

const sqlTeamPodsReady = `select id from pod where team_id = $1 and status = 'ready'`

// TellTeamTx has the agents of a team's running pods read their orders at once:
// there is something new about their end. Without it they read them within
// agentapi.LeaseEvery.
func (s *Service) TellTeamTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID) error {
	if s.Notify == nil {
		return nil
	}
	rows, _ := tx.Query(ctx, sqlTeamPodsReady, teamID)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return fmt.Errorf("list the running pods of team %s: %w", teamID, err)
	}
	for _, podID := range ids {
		if err := s.Notify(ctx, tx, ordersChannel, podID.String()); err != nil {
			return err
		}
	}
	return nil
}
