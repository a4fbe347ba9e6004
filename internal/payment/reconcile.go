package payment

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/wallet"
)

// A ReconcileJob asks for the processor's book to be compared with ours.
type ReconcileJob struct{}

// Kind is the job's name in the queue.
func (ReconcileJob) Kind() string { return "payment_reconcile" }

// Timeout is for a day of thousands of payments for plans: each takes a call.
func (ReconcileJob) Timeout() time.Duration { return 30 * time.Minute }

var _ job.Slow = ReconcileJob{}

const (
	// bookRest is how long after a day its lines may still come in.
	bookRest = time.Hour
	// bookSkew is how far the processor's clock may be from ours.
	bookSkew = 5 * time.Minute
	// bookDays is how many missed days one pass catches up on.
	bookDays = 400
)

// A Reconciliation is what a comparison of the books found.
type Reconciliation struct {
	Days     []BookDay // that were read, the oldest first
	Repaired int       // payments, refunds and disputes whose event was lost
	Problems []ClearingProblem
}

// Difference is how much money the two books disagree about, and in how many
// places, but for what an operator acknowledged.
func (r Reconciliation) Difference() (sum money.USD, places int) {
	for _, p := range r.Problems {
		if p.AckedAt == nil {
			sum += p.Off
			places++
		}
	}
	return sum, places
}

// A BookDay is a UTC day of a processor's book, summed up.
type BookDay struct {
	Day       time.Time `db:"day"`
	Movements int       `db:"movements"`
	Payments  money.USD `db:"payments_usd_micro"`
	Refunds   money.USD `db:"refunds_usd_micro"`
	Disputes  money.USD `db:"disputes_usd_micro"`
	Fees      money.USD `db:"fees_usd_micro"`
	Payouts   money.USD `db:"payouts_usd_micro"`
	Others    money.USD `db:"others_usd_micro"`
}

// bookNow is the time by which the processor's book is dated: the test checkout
// lives by business time, Stripe by its own, which is wall time.
func (s *Service) bookNow() time.Time {
	if s.Processor.Source() == wallet.Test {
		return s.Clock.Now()
	}
	return s.Clock.Wall()
}

// FollowBook asks for a comparison where a day is over that was not compared.
// Of several nodes' jobs one runs.
func (s *Service) FollowBook(ctx context.Context) error {
	if s.Processor == nil {
		return nil
	}
	days, open, err := s.missing(ctx)
	if err != nil || len(days) == 0 && !open {
		return err
	}
	return pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		return s.Jobs.AddTx(ctx, tx, ReconcileJob{}, job.Options{Unique: true, MaxAttempts: 3})
	})
}

const sqlFindBook = `
select array(select day from clearing_day where processor = $1) as days,
  exists (select from clearing_day where processor = $1 and compared_at is null) as open,
  least((select min(opened_at) from topup where processor = $1), (select min(opened_at) from team_checkout where processor = $1)) as first`

// A readState says which days of the processor's book were read. The book begins
// with our first order.
type readState struct {
	days  map[string]bool // as 2027-03-14
	open  bool            // one of them is still to be compared
	first *time.Time      // nil: there is no order
}

func (r *readState) has(day time.Time) bool { return r.days[day.Format(time.DateOnly)] }

func (s *Service) readState(ctx context.Context) (readState, error) {
	r := readState{days: map[string]bool{}}
	var read []time.Time
	if err := s.Pool.QueryRow(ctx, sqlFindBook, s.Processor.Source()).Scan(&read, &r.open, &r.first); err != nil {
		return r, fmt.Errorf("find which days are compared: %w", err)
	}
	for _, day := range read {
		r.days[day.Format(time.DateOnly)] = true
	}
	return r, nil
}

// missing lists the days that are over and were not read, and says whether one
// that was read is still to be compared.
func (s *Service) missing(ctx context.Context) (days []time.Time, open bool, err error) {
	read, err := s.readState(ctx)
	if err != nil || read.first == nil {
		return nil, read.open, err
	}
	over := s.bookNow().Add(-bookRest)
	for day := dayOf(*read.first); !day.AddDate(0, 0, 1).After(over) && len(days) < bookDays; day = day.AddDate(0, 0, 1) {
		if !read.has(day) {
			days = append(days, day)
		}
	}
	return days, read.open, nil
}

// dayOf is the UTC day of an instant.
func dayOf(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// Reconcile reads the days of the processor's book that are over, and compares
// them with ours: what we did not hear of is read again and done, as the
// sweeper does it; what still differs is reported, and adjusted by nobody. It
// may stop anywhere and run again.
func (s *Service) Reconcile(ctx context.Context) (Reconciliation, error) {
	if s.Processor == nil {
		return Reconciliation{}, ErrNotSetUp
	}
	days, _, err := s.missing(ctx)
	if err != nil {
		return Reconciliation{}, err
	}
	return s.reconcile(ctx, days, false)
}

// ReconcileDay reads a day anew, whether or not it is over, and compares it.
// The fault is ErrNotSetUp.
func (s *Service) ReconcileDay(ctx context.Context, day time.Time) (Reconciliation, error) {
	if s.Processor == nil {
		return Reconciliation{}, ErrNotSetUp
	}
	return s.reconcile(ctx, []time.Time{dayOf(day)}, true)
}

func (s *Service) reconcile(ctx context.Context, days []time.Time, again bool) (Reconciliation, error) {
	var r Reconciliation
	for _, day := range days {
		one, err := s.readBook(ctx, day)
		if err != nil {
			return r, err
		}
		r.Days = append(r.Days, one)
	}
	open := days
	if !again {
		var err error
		if open, err = s.openDays(ctx); err != nil {
			return r, err
		}
	}
	if len(open) > 0 {
		if err := s.compare(ctx, open, &r); err != nil {
			return r, err
		}
	}
	var err error
	r.Problems, err = s.ClearingProblems(ctx)
	return r, err
}

const sqlInsertMovement = `
insert into clearing_movement (processor, id, kind, at, amount_usd_micro, fee_usd_micro, currency, payment_id, case_id, order_id, subscription_id)
values (@processor, @id, @kind, @at, @amount, @fee, @currency, @payment, @case, @order, @subscription)
on conflict (processor, id) do nothing`

const sqlSumDay = `
insert into clearing_day (processor, day, movements, payments_usd_micro, refunds_usd_micro, disputes_usd_micro, fees_usd_micro,
  payouts_usd_micro, others_usd_micro, read_at)
select $1, $2, count(*),
  coalesce(sum(amount_usd_micro) filter (where kind = 'payment'), 0), coalesce(sum(amount_usd_micro) filter (where kind = 'refund'), 0),
  coalesce(sum(amount_usd_micro) filter (where kind = 'dispute'), 0),
  coalesce(sum(fee_usd_micro), 0) - coalesce(sum(amount_usd_micro) filter (where kind = 'fee'), 0),
  coalesce(sum(amount_usd_micro) filter (where kind = 'payout'), 0), coalesce(sum(amount_usd_micro) filter (where kind = 'other'), 0), $5
from clearing_movement where processor = $1 and at >= $3 and at < $4 and currency = 'usd'
on conflict (processor, day) do update set movements = excluded.movements, payments_usd_micro = excluded.payments_usd_micro,
  refunds_usd_micro = excluded.refunds_usd_micro, disputes_usd_micro = excluded.disputes_usd_micro,
  fees_usd_micro = excluded.fees_usd_micro, payouts_usd_micro = excluded.payouts_usd_micro,
  others_usd_micro = excluded.others_usd_micro, read_at = excluded.read_at
returning day, movements, payments_usd_micro, refunds_usd_micro, disputes_usd_micro, fees_usd_micro, payouts_usd_micro, others_usd_micro`

const sqlDropDay = `delete from clearing_day where processor = $1 and day = $2`

// readBook keeps a day of the processor's book. A day that is not over is
// summed up, but not kept as read: it will be read again.
func (s *Service) readBook(ctx context.Context, day time.Time) (BookDay, error) {
	end := day.AddDate(0, 0, 1)
	lines, err := s.Processor.ListMovements(ctx, day, end)
	if err != nil {
		return BookDay{}, fmt.Errorf("read the processor's book of %s: %w", day.Format(time.DateOnly), err)
	}
	source := s.Processor.Source()
	var sum BookDay
	err = pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		batch := &pgx.Batch{}
		for i := range lines {
			batch.Queue(sqlInsertMovement, lines[i].args(source))
		}
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, sqlSumDay, source, day, day, end, s.Clock.Now())
		if err != nil {
			return err
		}
		if sum, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[BookDay]); err != nil {
			return err
		}
		if end.After(s.bookNow().Add(-bookRest)) {
			_, err = tx.Exec(ctx, sqlDropDay, source, day)
		}
		return err
	})
	if err != nil {
		return BookDay{}, fmt.Errorf("keep the processor's book of %s: %w", day.Format(time.DateOnly), err)
	}
	return sum, nil
}

func (m *Movement) args(source wallet.Source) pgx.NamedArgs {
	return pgx.NamedArgs{
		"processor": source, "id": m.ID, "kind": m.Kind, "at": m.At, "amount": m.Amount, "fee": m.Fee, "currency": m.Currency,
		"payment": m.PaymentID, "case": m.CaseID, "order": m.OrderID, "subscription": m.SubscriptionID,
	}
}

const sqlListOpenDays = `select day from clearing_day where processor = $1 and compared_at is null order by day`

func (s *Service) openDays(ctx context.Context) ([]time.Time, error) {
	rows, err := s.Pool.Query(ctx, sqlListOpenDays, s.Processor.Source())
	if err != nil {
		return nil, fmt.Errorf("list the days to compare: %w", err)
	}
	days, err := pgx.CollectRows(rows, pgx.RowTo[time.Time])
	if err != nil {
		return nil, fmt.Errorf("list the days to compare: %w", err)
	}
	return days, nil
}

// compare compares what days are about with our books, twice: what we did not
// hear of is repaired between.
func (s *Service) compare(ctx context.Context, days []time.Time, r *Reconciliation) error {
	first, end := days[0], days[len(days)-1].AddDate(0, 0, 1)
	touched, strangers, err := s.touched(ctx, first, end)
	if err != nil {
		return err
	}
	known, err := s.knownUntil(ctx, days)
	if err != nil {
		return err
	}
	seen, problems, err := s.differences(ctx, touched, known)
	if err != nil {
		return err
	}
	if len(problems) > 0 {
		if err := s.repair(ctx, seen, problems); err != nil {
			s.Logger.ErrorContext(ctx, "what the processor's book has could not be read again", slog.Any("err", err))
		}
		before := len(problems)
		if _, problems, err = s.differences(ctx, touched, known); err != nil {
			return err
		}
		r.Repaired += max(0, before-len(problems))
	}
	lines, err := s.unknownLines(ctx, first, end)
	if err != nil {
		return err
	}
	return s.keepProblems(ctx, days, touched, append(append(problems, strangers...), lines...))
}

// knownUntil is up to when the processor's book is known without a gap, where
// some days were read just now.
func (s *Service) knownUntil(ctx context.Context, just []time.Time) (time.Time, error) {
	read, err := s.readState(ctx)
	if err != nil {
		return time.Time{}, err
	}
	for _, day := range just {
		read.days[day.Format(time.DateOnly)] = true
	}
	known := just[0]
	if read.first != nil {
		known = dayOf(*read.first)
	}
	now := s.bookNow()
	for read.has(known) && known.Before(now) {
		known = known.AddDate(0, 0, 1)
	}
	if known.After(now) {
		known = now
	}
	return known.Add(-bookSkew), nil
}

// repair reads from the processor what our books do not have, and does what its
// events would have done.
func (s *Service) repair(ctx context.Context, seen []position, problems []ClearingProblem) error {
	missing, cases := map[string]bool{}, false
	for _, p := range problems {
		missing[p.PaymentID] = missing[p.PaymentID] || p.Kind == creditMissing || p.Kind == foreign
		cases = cases || p.Kind == caseDiffers
	}
	var failed []error
	for i := range seen {
		if missing[seen[i].paymentID] {
			failed = append(failed, s.readOrders(ctx, &seen[i]))
		}
	}
	if cases {
		failed = append(failed, s.ReadCases(ctx))
	}
	return errors.Join(failed...)
}

const sqlListOrders = `
select id, processor, coalesce(session_id, '') as session_id, automatic from topup where id = any($1)
union all
select id, processor, coalesce(session_id, '') as session_id, false as automatic from team_checkout where id = any($1)`

// readOrders reads again the checkouts and charges of the orders that a payment names.
func (s *Service) readOrders(ctx context.Context, p *position) error {
	rows, err := s.Pool.Query(ctx, sqlListOrders, p.orders())
	if err != nil {
		return fmt.Errorf("list the orders of payment %s: %w", p.paymentID, err)
	}
	type order struct {
		ID        uuid.UUID     `db:"id"`
		Processor wallet.Source `db:"processor"`
		SessionID string        `db:"session_id"`
		Automatic bool          `db:"automatic"`
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[order])
	if err != nil {
		return fmt.Errorf("list the orders of payment %s: %w", p.paymentID, err)
	}
	for _, o := range found {
		if o.Automatic {
			if err := s.readCharge(ctx, o.ID); err != nil {
				return err
			}
			continue
		}
		if err := s.applyRead(ctx, o.Processor, o.SessionID); err != nil {
			return err
		}
	}
	return nil
}
