package wallet

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/id"
)

// ResumeTx starts a resource's meter at an instant in the past, and charges at
// once what it would have cost since: for what lay in the trash. That charge is
// of now's day, however long ago the instant was, because a day that is over
// may be in a statement already. The caller has made sure with RequireTx that
// the team has the money.
func (s *Service) ResumeTx(ctx context.Context, tx pgx.Tx, start Start, now time.Time) error {
	b, err := s.lockAt(ctx, tx, start.TeamID, now)
	if err != nil {
		return err
	}
	if err := b.resume(start, now.UnixMicro()); err != nil {
		return err
	}
	return s.save(ctx, tx, b)
}

func (b *book) resume(s Start, now int64) error {
	if b.open(s.ResourceID) != nil {
		return b.start(s) // it runs, as it should or not
	}
	if err := b.settle(now); err != nil {
		return err
	}
	w, from := &b.wallet, s.At.UnixMicro()
	w.SettledUS = max(w.SettledUS, now) // nothing ran after the watermark
	s.At = time.UnixMicro(now)
	if from >= now || s.Rate == 0 {
		return b.start(s)
	}
	past := segmentRow{
		// Derived, so that one stretch of time is charged once, for ever.
		ID: id.Derive(s.ResourceID, "resumed", strconv.FormatInt(from, 10)), TeamID: w.TeamID, ResourceID: s.ResourceID,
		Kind: s.Kind, Rate: s.Rate, StartedUS: from, StoppedUS: &now, Description: s.Description, change: opened,
	}
	w.enterMonth(max(now, w.MonthUS))
	b.charge(&past, past.cost(now), from, now, dayStart(now))
	b.segments = append(b.segments, past)
	return b.start(s)
}
