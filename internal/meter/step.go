package meter

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/fail"
	"homeport.dev/homeport/internal/notice"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/wallet"
)

// warn tells a team that its balance will not last long.
func (s *Service) warn(ctx context.Context, teamID uuid.UUID, at time.Time) error {
	return pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		w, due, err := s.Wallet.WarnTx(ctx, tx, teamID, at)
		if err != nil || !due {
			return err
		}
		if w.Runway <= wallet.LandingNotice {
			if err := s.Pods.TellTeamTx(ctx, tx, teamID); err != nil {
				return err
			}
		}
		return s.Notices.PostTx(ctx, tx, notice.Notice{
			TeamID: teamID, Kind: notice.RunwayKind(w.Runway), Key: instant(w.At), PostedAt: w.At,
			Facts: notice.Facts{Balance: w.Balance.Balance, Spending: w.SpendingPerHour, EndsAt: w.DepletesAt, Pods: w.Pods},
		})
	})
}

// low has what watches a team's balance know that it fell.
func (s *Service) low(ctx context.Context, teamID uuid.UUID, at time.Time) error {
	return pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		if s.OnLow != nil {
			if err := s.OnLow(ctx, tx, teamID, at); err != nil {
				return err
			}
		}
		_, err := s.Wallet.LowTx(ctx, tx, teamID, at)
		return err
	})
}

// exhaust ends one team's pods if its money ran out: its pods are locked
// before its wallet, which is then read again.
func (s *Service) exhaust(ctx context.Context, teamID uuid.UUID, now time.Time) error {
	ended := false
	var e wallet.Exhaustion
	err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) (err error) {
		if err := s.Pods.LockTeamTx(ctx, tx, teamID); err != nil {
			return err
		}
		volumes, err := s.Volumes.LockTeamTx(ctx, tx, teamID)
		if err != nil {
			return err
		}
		e, ended, err = s.Wallet.ExhaustTx(ctx, tx, teamID, now)
		if err != nil || !ended {
			return err
		}
		if e.First {
			until := e.At.Add(wallet.StorageKeeps)
			err = s.Notices.PostTx(ctx, tx, notice.Notice{
				TeamID: teamID, Kind: notice.BalanceEmpty, Key: instant(e.At), PostedAt: e.At,
				Facts: notice.Facts{Spending: e.Storage, Volumes: volumes, EndsAt: &until},
			})
			if err != nil {
				return err
			}
		}
		return s.Pods.SwitchOffTeamTx(ctx, tx, teamID, e.At, ReasonBalance)
	})
	if err != nil {
		return fmt.Errorf("switch off the pods of team %s: %w", teamID, err)
	}
	if ended {
		fail.Point("meter.exhaust.committed")
		s.Logger.InfoContext(ctx, "a team's balance is used up",
			slog.String("team", teamID.String()), slog.Time("at", e.At))
	}
	return nil
}

// spend looks at a team's month, tells what it reached, and ends the pods an
// hour after the limit was used up.
func (s *Service) spend(ctx context.Context, teamID uuid.UUID, at time.Time) error {
	return pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		if err := s.Pods.LockTeamTx(ctx, tx, teamID); err != nil {
			return err
		}
		if _, err := s.Volumes.LockTeamTx(ctx, tx, teamID); err != nil {
			return err
		}
		seen, err := s.Wallet.SpendTx(ctx, tx, teamID, at)
		if err != nil {
			return err
		}
		if seen.Stage > 0 {
			if err := s.Notices.PostTx(ctx, tx, spendNotice(teamID, seen)); err != nil {
				return err
			}
			if err := s.Pods.TellTeamTx(ctx, tx, teamID); err != nil {
				return err
			}
		}
		if !seen.Land {
			return nil
		}
		s.Logger.InfoContext(ctx, "a team's month limit was used up an hour ago", slog.String("team", teamID.String()))
		return s.Pods.SwitchOffTeamTx(ctx, tx, teamID, seen.At, ReasonSpendLimit)
	})
}

// spendNotice tells each percentage once in a month, and again of another
// limit; that pods are about to end is told each time.
func spendNotice(teamID uuid.UUID, seen wallet.Spend) notice.Notice {
	n := notice.Notice{
		TeamID: teamID, Kind: notice.SpendKind(seen.Stage), Key: seen.At.Format("2006-01") + ":" + seen.Limit.Decimal(), PostedAt: seen.At,
		Facts: notice.Facts{Spent: seen.Spent, Limit: seen.Limit, Spending: seen.Spending},
	}
	if !seen.LandsAt.IsZero() {
		n.Key += ":" + instant(seen.LandsAt)
		n.Facts.EndsAt = &seen.LandsAt
	}
	return n
}

// arrears takes a team's next step of unpaid storage. Its volumes are locked
// before its wallet. The fault volume.ErrInUse means that a pod's last sync
// still runs: the step waits for it.
func (s *Service) arrears(ctx context.Context, teamID uuid.UUID, now time.Time) error {
	return pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		volumes, err := s.Volumes.LockTeamTx(ctx, tx, teamID)
		if err != nil {
			return err
		}
		a, err := s.Wallet.ArrearsTx(ctx, tx, teamID, now)
		if err != nil {
			return err
		}
		switch a.Step {
		case 0:
			return nil
		case wallet.ArrearsEnd:
			return s.Volumes.RedeemTx(ctx, tx, teamID, a.At)
		case wallet.ArrearsFreeze:
			err = s.Volumes.FreezeTx(ctx, tx, teamID, a.At)
		case wallet.ArrearsTrash:
			err = s.Volumes.TrashTeamTx(ctx, tx, teamID, uuid.Nil, a.At, a.Since.Add(wallet.PurgeAfter))
		}
		if err != nil || volumes == 0 {
			return err
		}
		return s.Notices.PostTx(ctx, tx, arrearsNotice(teamID, a, volumes))
	})
}

// trashAfter is when unpaid storage moves to the trash.
const trashAfter = 30 * 24 * time.Hour

func arrearsNotice(teamID uuid.UUID, a wallet.Arrears, volumes int) notice.Notice {
	ends := a.Since.Add(trashAfter)
	if a.Step == wallet.ArrearsTrash {
		ends = a.Since.Add(wallet.PurgeAfter)
	}
	return notice.Notice{
		TeamID: teamID, Kind: notice.ArrearsKind(a.Step), Key: instant(a.Since), PostedAt: a.At,
		Facts: notice.Facts{Balance: a.Owed.Balance, Volumes: volumes, EndsAt: &ends},
	}
}

// instant names an instant in a notice's key.
func instant(t time.Time) string { return strconv.FormatInt(t.UnixMicro(), 10) }
