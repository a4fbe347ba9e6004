package meter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/fail"
	"homeport.dev/homeport/internal/pg"
)

// exhaustBatch is how many teams one look finds at most.
const exhaustBatch = 100

// ExhaustSweep switches off the pods of every team whose money ran out by
// business time, in the order in which it did. Call it each second, and
// whenever something may have come due. A team that fails does not keep the
// others waiting, and is found again by the next sweep.
func (s *Service) ExhaustSweep(ctx context.Context) error {
	return s.exhaustAll(ctx, s.Clock.Now())
}

func (s *Service) exhaustAll(ctx context.Context, now time.Time) error {
	failed := make(map[uuid.UUID]error)
	for {
		teams, err := s.Wallet.DueExhausted(ctx, now, exhaustBatch+len(failed))
		if err != nil {
			return err
		}
		found := false
		for _, teamID := range teams {
			if failed[teamID] != nil {
				continue
			}
			found = true
			if err := s.exhaust(ctx, teamID, now); err != nil {
				failed[teamID] = err
			}
		}
		if !found {
			return errors.Join(slices.Collect(maps.Values(failed))...)
		}
	}
}

// exhaust ends one team's pods if its money ran out: its pods are locked
// before its wallet, which is then read again.
func (s *Service) exhaust(ctx context.Context, teamID uuid.UUID, now time.Time) error {
	ended := false
	var at time.Time
	err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) (err error) {
		if err := s.Pods.LockTeamTx(ctx, tx, teamID); err != nil {
			return err
		}
		at, ended, err = s.Wallet.ExhaustTx(ctx, tx, teamID, now)
		if err != nil || !ended {
			return err
		}
		return s.Pods.SwitchOffTeamTx(ctx, tx, teamID, at, ReasonBalance)
	})
	if err != nil {
		return fmt.Errorf("switch off the pods of team %s: %w", teamID, err)
	}
	if ended {
		fail.Point("meter.exhaust.committed")
		s.Logger.InfoContext(ctx, "a team's balance is used up",
			slog.String("team", teamID.String()), slog.Time("at", at))
	}
	return nil
}

// SettleSweep posts the usage of the days that ended by business time.
func (s *Service) SettleSweep(ctx context.Context) error {
	_, err := s.Wallet.SettleDue(ctx, s.Clock.Now())
	return err
}

// RunDue does everything that came due by now, before it returns: for business
// time that was moved. What ran out is handled first, in the order in which it
// did; what is left is posted day by day.
func (s *Service) RunDue(ctx context.Context, now time.Time) error {
	if err := s.exhaustAll(ctx, now); err != nil {
		return err
	}
	_, err := s.Wallet.SettleDue(ctx, now)
	return err
}
