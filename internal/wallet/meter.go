package wallet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pg"
)

// ErrNotMetered says that a resource has no open segment to give another rate:
// it was never started, or its meter has ended.
var ErrNotMetered = errors.New("wallet: the resource has no open segment")

// StartTx starts a resource's meter. Starting it again at the same rate does
// nothing; at another rate it is an error. An instant before the wallet's
// watermark counts as the watermark. A pod that is started without balance
// ends at once, at no cost, by the exhaustion sweep.
func (s *Service) StartTx(ctx context.Context, tx pgx.Tx, start Start) error {
	if start.Rate < 0 || start.Rate > money.MaxRate {
		return fmt.Errorf("start metering %s: the rate %s/h is out of range", start.ResourceID, start.Rate.Decimal())
	}
	b, err := s.lockAt(ctx, tx, start.TeamID, start.At)
	if err != nil {
		return err
	}
	if err := b.start(start); err != nil {
		return err
	}
	return s.save(ctx, tx, b)
}

// RerateTx gives a metered resource another rate from an instant on. Rate 0
// keeps it metered without cost. The error is ErrNotMetered when its meter
// does not run.
func (s *Service) RerateTx(ctx context.Context, tx pgx.Tx, resourceID uuid.UUID, rate money.Rate, at time.Time) error {
	if rate < 0 || rate > money.MaxRate {
		return fmt.Errorf("rerate %s: the rate %s/h is out of range", resourceID, rate.Decimal())
	}
	teamID, found, err := findTeam(ctx, tx, resourceID)
	if err != nil {
		return err
	}
	if !found {
		return ErrNotMetered
	}
	b, err := s.lockAt(ctx, tx, teamID, at)
	if err != nil {
		return err
	}
	metered, err := b.rerate(resourceID, rate, at.UnixMicro())
	if err != nil {
		return err
	}
	if err := s.save(ctx, tx, b); err != nil {
		return err
	}
	if !metered {
		return ErrNotMetered
	}
	return nil
}

// StopTx ends a resource's meter at an instant. A meter that ended by then
// already is left alone, so it may be called again. One that ended later, or
// is settled beyond, is moved back to the instant, and what was charged beyond
// is refunded.
func (s *Service) StopTx(ctx context.Context, tx pgx.Tx, resourceID uuid.UUID, at time.Time) error {
	teamID, found, err := findTeam(ctx, tx, resourceID)
	if err != nil || !found {
		return err
	}
	b, err := s.lockAt(ctx, tx, teamID, at)
	if err != nil {
		return err
	}
	running, err := listRunning(ctx, tx, resourceID, at.UnixMicro())
	if err != nil {
		return err
	}
	if err := b.stop(running, at.UnixMicro()); err != nil {
		return err
	}
	return s.save(ctx, tx, b)
}

const sqlListRunning = `
select s.id, s.team_id, s.resource_id, s.kind, s.rate_usd_micro_per_hour, s.started_us, s.stopped_us, s.description,
  coalesce((select sum(case t.code when 'charge' then t.amount_usd_micro else -t.amount_usd_micro end)
    from transfer t where t.segment_id = s.id and t.code in ('charge', 'refund')), 0)::bigint as charged
from segment s
where s.resource_id = $1 and coalesce(s.stopped_us, 9223372036854775807) > $2
order by s.started_us`

// A runningRow is a segment that ends after some instant, with what was posted
// for it so far.
type runningRow struct {
	segmentRow
	Charged money.USD `db:"charged"`
}

func listRunning(ctx context.Context, tx pgx.Tx, resourceID uuid.UUID, at int64) ([]runningRow, error) {
	rows, err := tx.Query(ctx, sqlListRunning, resourceID, at)
	if err != nil {
		return nil, fmt.Errorf("list segments of %s: %w", resourceID, err)
	}
	running, err := pgx.CollectRows(rows, pgx.RowToStructByName[runningRow])
	if err != nil {
		return nil, fmt.Errorf("list segments of %s: %w", resourceID, err)
	}
	return running, nil
}

// stop ends a resource's segments at an instant and refunds what was posted
// beyond it.
func (b *book) stop(running []runningRow, at int64) error {
	var refunds []posting
	moved := false
	for i := range running {
		g := b.adopt(running[i].segmentRow)
		if g.StoppedUS != nil && *g.StoppedUS <= at {
			continue // roll ended it since
		}
		g.close(at)
		over := running[i].Charged - g.cost(b.wallet.SettledUS)
		if over > 0 && g.end() < b.wallet.SettledUS {
			refunds = append(refunds, posting{
				Debit: g.Kind.usage(), Credit: b.wallet.AccountID, Amount: over, Code: refund,
				Key: fmt.Sprintf("refund:%s:%d", g.ID, g.end()), AtUS: max(at, b.wallet.SettledUS),
				Segment: g.ID, Resource: g.ResourceID, Kind: g.Kind,
				Description: g.Kind.refunded(g.Description, clock.FromMicros(g.end())),
			})
		}
		b.dirty, moved = true, true
	}
	if b.dirty {
		b.refresh(at)
	}
	if moved && b.wallet.ExhaustedUS != nil && b.shown() >= b.accrued(at) {
		b.redeem(at) // what went on without money never ran
		b.refresh(at)
	}
	for _, p := range refunds {
		b.wallet.MonthSpent = max(0, b.wallet.MonthSpent-p.Amount)
		if err := b.receive(p, at); err != nil {
			return err
		}
	}
	return nil
}

// adopt returns the book's own copy of a segment, taking one that is settled
// to its end in.
func (b *book) adopt(g segmentRow) *segmentRow {
	for i := range b.segments {
		if b.segments[i].ID == g.ID {
			return &b.segments[i]
		}
	}
	b.segments = append(b.segments, g)
	return &b.segments[len(b.segments)-1]
}

// SettleTx posts everything up to now: before a wallet closes, or money leaves
// it. It does first what was due by then.
func (s *Service) SettleTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, now time.Time) error {
	b, err := s.lockAt(ctx, tx, teamID, now)
	if err != nil {
		return err
	}
	if err := b.settle(now.UnixMicro()); err != nil {
		return err
	}
	return s.save(ctx, tx, b)
}

// lockAt locks a wallet and does what was due at an instant, which the caller
// must save.
func (s *Service) lockAt(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, at time.Time) (*book, error) {
	b, err := s.lock(ctx, tx, teamID)
	if err != nil {
		return nil, err
	}
	return b, b.roll(at.UnixMicro())
}

const sqlFindTeamOfResource = `select team_id from segment where resource_id = $1 order by started_us desc limit 1`

// findTeam says whose wallet meters a resource.
func findTeam(ctx context.Context, q pg.Querier, resourceID uuid.UUID) (uuid.UUID, bool, error) {
	var teamID uuid.UUID
	err := q.QueryRow(ctx, sqlFindTeamOfResource, resourceID).Scan(&teamID)
	if errors.Is(err, pgx.ErrNoRows) {
		return uuid.Nil, false, nil
	}
	if err != nil {
		return uuid.Nil, false, fmt.Errorf("find the wallet of %s: %w", resourceID, err)
	}
	return teamID, true, nil
}
