package offer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/mail"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/provider"
)

// BreakerLimits say when a cloud is taken off sale; the zero value of each
// means its default.
type BreakerLimits struct {
	Failures   int           // 5 failed calls
	Window     time.Duration // within 5 min
	ProbeFirst time.Duration // 30 s until it is tried again, twice as long after each try that failed
	ProbeMost  time.Duration // 15 min at most
	Funds      time.Duration // 10 min until an account without money is tried, then likewise up to an hour
}

func (l BreakerLimits) withDefaults() BreakerLimits {
	if l.Failures == 0 {
		l.Failures = 5
	}
	for _, d := range []struct {
		have *time.Duration
		def  time.Duration
	}{{&l.Window, 5 * time.Minute}, {&l.ProbeFirst, 30 * time.Second}, {&l.ProbeMost, 15 * time.Minute}, {&l.Funds, 10 * time.Minute}} {
		if *d.have == 0 {
			*d.have = d.def
		}
	}
	return l
}

// fundsMost is the longest time between two tries of an account without money.
const fundsMost = time.Hour

// The states of a breaker and what opens it.
const (
	Closed = "closed" // the cloud works
	Open   = "open"   // off sale; nothing is launched there
	Half   = "half"   // on sale again, on trial: one failure opens it at once

	BrokenByFailures = "failures"
	BrokenByFunds    = "funds" // our account there is empty
)

// A Breaker is what is known of a cloud's health.
type Breaker struct {
	Adapter  string
	State    string
	Reason   string
	Failures int
	SinceAt  time.Time
	OpenedAt *time.Time
	ProbeAt  *time.Time
	Opens    int
	Trouble  string
}

// opened is b after it opens for a reason, once more.
func (b Breaker) opened(reason string, now time.Time, l BreakerLimits) Breaker {
	if b.State == Closed || b.Reason != reason {
		b.Opens, b.OpenedAt = 0, &now
	}
	first, most := l.ProbeFirst, l.ProbeMost
	if reason == BrokenByFunds {
		first, most = l.Funds, max(l.Funds, fundsMost)
	}
	probe := now.Add(min(first<<min(b.Opens, 16), most))
	b.State, b.Reason, b.ProbeAt, b.Failures, b.SinceAt = Open, reason, &probe, 0, now
	b.Opens++
	return b
}

// closed is b once its cloud works.
func (b Breaker) closed(now time.Time) Breaker {
	return Breaker{Adapter: b.Adapter, State: Closed, SinceAt: now}
}

// failed is b after a call that the cloud did not answer as it should.
func (b Breaker) failed(now time.Time, l BreakerLimits) Breaker {
	switch {
	case b.State == Open:
		return b
	case b.State == Half && b.Reason == BrokenByFailures:
		return b.opened(BrokenByFailures, now, l)
	}
	if now.Sub(b.SinceAt) >= l.Window {
		b.Failures, b.SinceAt = 0, now
	}
	if b.Failures++; b.Failures >= l.Failures {
		return b.opened(BrokenByFailures, now, l)
	}
	return b
}

// listed is b after the cloud's list was asked for: the probe of an open
// breaker, and the end of a trial in which nothing failed. A list that is empty
// or refused proves nothing; a cloud that says it is sold out is well.
func (b Breaker) listed(err error, now time.Time, l BreakerLimits) Breaker {
	if errors.Is(err, provider.ErrNoCapacity) {
		err = nil
	}
	switch {
	case b.State == Open && now.Before(*b.ProbeAt):
	case b.State == Open && err != nil:
		return b.opened(b.Reason, now, l)
	case b.State == Open:
		b.State, b.ProbeAt, b.SinceAt = Half, nil, now
	case broken(err):
		return b.failed(now, l)
	case err == nil && b.State == Half && b.Reason == BrokenByFailures && now.Sub(b.SinceAt) >= l.Window:
		return b.closed(now)
	}
	return b
}

// launched is b after the cloud made a machine.
func (b Breaker) launched(now time.Time) Breaker {
	if b.State == Half || b.State == Open && b.Reason == BrokenByFunds {
		return b.closed(now)
	}
	return b
}

// A Call is what went over to a cloud.
type Call int

// The calls of a provider.Adapter that tell of its health.
const (
	CallOther Call = iota
	CallOffers
	CallLaunch
)

// after is b after a call with this end.
func (b Breaker) after(c Call, err error, now time.Time, l BreakerLimits) Breaker {
	next := b
	switch {
	case errors.Is(err, provider.ErrFunds) && (b.State != Open || b.Reason != BrokenByFunds):
		next = b.opened(BrokenByFunds, now, l)
	case errors.Is(err, provider.ErrFunds): // of a call that was under way
	case c == CallOffers:
		next = b.listed(err, now, l)
	case broken(err):
		next = b.failed(now, l)
	case c == CallLaunch && err == nil:
		next = b.launched(now)
	}
	if next != b && broken(err) {
		next.Trouble = troubleOf(err)
	}
	return next
}

// answers are the faults by which a cloud that works says no.
var answers = []error{
	provider.ErrNoCapacity, provider.ErrPriceMoved, provider.ErrRefused, provider.ErrRateLimited,
	provider.ErrPortTaken, provider.ErrNotYet, provider.ErrUnsupported, errEmpty,
}

// broken reports whether an error says that the cloud does not work.
func broken(err error) bool {
	if err == nil {
		return false
	}
	for _, answer := range answers {
		if errors.Is(err, answer) {
			return false
		}
	}
	return true
}

const sqlFindBreaker = `
select adapter, state, reason, failures, since_at, opened_at, probe_at, opens, trouble
from provider_breaker where adapter = $1`

const sqlLockBreaker = `
select adapter, state, reason, failures, since_at, opened_at, probe_at, opens, trouble
from provider_breaker where adapter = $1 for update`

const sqlInsertBreaker = `
insert into provider_breaker (adapter, state, reason, failures, since_at, opens, trouble)
values ($1, 'closed', '', 0, $2, 0, '') on conflict (adapter) do nothing`

const sqlSaveBreaker = `
update provider_breaker set state = @state, reason = @reason, failures = @failures, since_at = @since,
  opened_at = @opened, probe_at = @probe, opens = @opens, trouble = @trouble
where adapter = @adapter`

// An open breaker's offers come back with its next good list; should nobody
// ask for one they hide by themselves.
const sqlTakeOffSale = `
insert into offer_source (adapter, asked_at, offers, trouble, suspended_until)
values (@adapter, @now, 0, '', @until)
on conflict (adapter) do update set suspended_until = excluded.suspended_until`

// NoteCall records how a call to a cloud ended, for all nodes: too many failures
// take its offers off sale, and an account without money does so at once.
// Nothing is written while a cloud works. Machines that run, and the ends of
// others, are not its business.
func (s *Service) NoteCall(ctx context.Context, adapter string, c Call, called error) error {
	if called == nil && c == CallOther {
		return nil
	}
	rows, _ := s.Pool.Query(ctx, sqlFindBreaker, adapter)
	b, err := oneBreaker(rows, adapter)
	if err != nil {
		return err
	}
	if b.after(c, called, s.Clock.Wall(), s.Breaker) == b {
		return nil
	}
	var was, is Breaker
	err = pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		now := s.Clock.Wall()
		if _, err := tx.Exec(ctx, sqlInsertBreaker, adapter, now); err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, sqlLockBreaker, adapter)
		if was, err = oneBreaker(rows, adapter); err != nil {
			return err
		}
		is = was.after(c, called, now, s.Breaker)
		return s.saveBreakerTx(ctx, tx, was, is, now)
	})
	if err != nil {
		return fmt.Errorf("note a call to %s: %w", adapter, err)
	}
	if was.State == is.State && was.Reason == is.Reason {
		return nil
	}
	if is.State == Open {
		s.Logger.ErrorContext(ctx, "a cloud is off sale", "provider", adapter, "reason", is.Reason, "trouble", is.Trouble, "probe", *is.ProbeAt)
	} else {
		s.Logger.InfoContext(ctx, "a cloud is on sale again", "provider", adapter, "breaker", is.State)
	}
	return nil
}

func oneBreaker(rows pgx.Rows, adapter string) (Breaker, error) {
	b, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Breaker])
	if errors.Is(err, pgx.ErrNoRows) {
		return Breaker{Adapter: adapter, State: Closed}, nil
	}
	if err != nil {
		return b, fmt.Errorf("read the breaker of %s: %w", adapter, err)
	}
	return b, nil
}

// saveBreakerTx stores a breaker; with its state its offers go off sale or come
// back. The operator is written to when it opens, not when a trial fails.
func (s *Service) saveBreakerTx(ctx context.Context, tx pgx.Tx, was, is Breaker, now time.Time) error {
	_, err := tx.Exec(ctx, sqlSaveBreaker, pgx.NamedArgs{
		"adapter": is.Adapter, "state": is.State, "reason": is.Reason, "failures": is.Failures, "since": is.SinceAt,
		"opened": is.OpenedAt, "probe": is.ProbeAt, "opens": is.Opens, "trouble": is.Trouble,
	})
	if err != nil || is.State != Open && was.State != Open {
		return err
	}
	var until *time.Time
	if is.State == Open {
		hidden := is.ProbeAt.Add(VisibleFor)
		until = &hidden
	}
	if _, err := tx.Exec(ctx, sqlTakeOffSale, pgx.NamedArgs{"adapter": is.Adapter, "now": now, "until": until}); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, sqlBumpVersion); err != nil {
		return err
	}
	if is.State != Open || was.OpenedAt != nil && was.Reason == is.Reason || s.Operator == "" {
		return nil
	}
	letter := BrokenJob{Adapter: is.Adapter, Reason: is.Reason, Trouble: is.Trouble, At: *is.OpenedAt}
	return s.Jobs.AddTx(ctx, tx, letter, job.Options{MaxAttempts: mail.Attempts})
}

// OpenTx reports whether nothing is to be launched at a cloud now.
func (s *Service) OpenTx(ctx context.Context, q pg.Querier, adapter string) (bool, error) {
	rows, _ := q.Query(ctx, sqlFindBreaker, adapter)
	b, err := oneBreaker(rows, adapter)
	return b.State == Open, err
}
