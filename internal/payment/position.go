package payment

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/wallet"
)

const sqlListTouched = `
select distinct payment_id from clearing_movement where processor = $1 and at >= $2 and at < $3 and payment_id <> ''
union
select payment_id from clearing_problem where processor = $1 and ended_at is null and payment_id <> ''`

const sqlListCasePayments = `select distinct payment_id from payment_case where processor = $1 and id = any($2)`

// touched lists the payments that [from, to) is about, in either book, and
// those of problems that are still open. Transfers of ours with the processor
// that are about none come as problems.
func (s *Service) touched(ctx context.Context, from, to time.Time) (payments []string, strangers []ClearingProblem, err error) {
	source := s.Processor.Source()
	all := map[string]bool{}
	collect := func(sql string, args ...any) error {
		rows, err := s.Pool.Query(ctx, sql, args...)
		if err != nil {
			return fmt.Errorf("list the payments to compare: %w", err)
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return fmt.Errorf("list the payments to compare: %w", err)
		}
		for _, p := range found {
			all[p] = true
		}
		return nil
	}
	if err := collect(sqlListTouched, source, from, to); err != nil {
		return nil, nil, err
	}
	var cleared []wallet.Posted
	for _, account := range []wallet.Source{source, wallet.Disputed} {
		// What was posted at the very end may be of the processor's next day.
		found, err := s.Wallet.Cleared(ctx, account, from.Add(-bookSkew), to.Add(-bookSkew))
		if err != nil {
			return nil, nil, err
		}
		cleared = append(cleared, found...)
	}
	var cases []string
	for _, c := range cleared {
		switch {
		case strings.HasPrefix(c.Key, paymentPrefix):
			all[strings.TrimPrefix(c.Key, paymentPrefix)] = true
		case strings.HasPrefix(c.Key, refundPrefix), strings.HasPrefix(c.Key, disputePrefix):
			cases = append(cases, c.Reference)
		case !strings.HasPrefix(c.Key, closingPrefix):
			strangers = append(strangers, ClearingProblem{
				Subject: c.Key, Kind: strange, Off: c.Amount, Detail: "a transfer of team " + c.TeamID.String() + " names no payment",
			})
		}
	}
	if err := collect(sqlListCasePayments, source, cases); err != nil {
		return nil, nil, err
	}
	return slices.Sorted(maps.Keys(all)), strangers, nil
}

const sqlListMovements = `
select id, kind, at, amount_usd_micro, fee_usd_micro, currency, payment_id, case_id, order_id, subscription_id
from clearing_movement where processor = $1 and payment_id = any($2) order by at, id`

const sqlListClaims = `
select payment_id, amount_usd_micro, coalesce(charged_usd_micro, amount_usd_micro) as charged_usd_micro
from topup where processor = $1 and payment_id = any($2) and status = 'paid'`

const sqlListOwnOrders = `
select id from topup where processor = $1 and id = any($2)
union all
select id from team_checkout where processor = $1 and id = any($2)`

const sqlListOwnPlans = `select id from subscription where processor = $1 and id = any($2)`

const sqlListCasesOf = `
select id, kind, payment_id, amount_usd_micro, state, team_id, coalesce(debit_usd_micro, 0) as debit_usd_micro
from payment_case where processor = $1 and payment_id = any($2) order by id`

// differences reads both books about payments, of which movements are known up to an
// instant, and compares them.
func (s *Service) differences(ctx context.Context, payments []string, before time.Time) ([]position, []ClearingProblem, error) {
	var all []position
	var problems []ClearingProblem
	for batch := range slices.Chunk(payments, 500) {
		seen, err := s.positions(ctx, batch, before)
		if err != nil {
			return nil, nil, fmt.Errorf("read both books: %w", err)
		}
		for i := range seen {
			problems = append(problems, seen[i].problems()...)
		}
		all = append(all, seen...)
	}
	return all, problems, nil
}

func (s *Service) positions(ctx context.Context, payments []string, before time.Time) ([]position, error) {
	source, at := s.Processor.Source(), map[string]*position{}
	seen := make([]position, len(payments))
	for i, p := range payments {
		seen[i] = position{paymentID: p, before: before}
		at[p] = &seen[i]
	}
	movements, err := collect[Movement](ctx, s.Pool, sqlListMovements, source, payments)
	if err != nil {
		return nil, err
	}
	for _, m := range movements {
		at[m.PaymentID].movements = append(at[m.PaymentID].movements, m)
	}
	claims, err := collect[claim](ctx, s.Pool, sqlListClaims, source, payments)
	if err != nil {
		return nil, err
	}
	for i := range claims {
		at[claims[i].PaymentID].claim = &claims[i]
	}
	cases, err := collect[caseRow](ctx, s.Pool, sqlListCasesOf, source, payments)
	if err != nil {
		return nil, err
	}
	for _, c := range cases {
		at[c.PaymentID].cases = append(at[c.PaymentID].cases, c)
	}
	if err := s.own(ctx, seen); err != nil {
		return nil, err
	}
	var keys []string
	for i := range seen {
		keys = append(keys, seen[i].keys()...)
	}
	posted, err := s.Wallet.Posted(ctx, s.Pool, keys)
	if err != nil {
		return nil, err
	}
	for i := range seen {
		seen[i].posted = map[string]wallet.Posted{}
		for _, key := range seen[i].keys() {
			if p, ok := posted[key]; ok {
				seen[i].posted[key] = p
			}
		}
	}
	return seen, nil
}

// own notes which payments are of orders and subscriptions of ours.
func (s *Service) own(ctx context.Context, seen []position) error {
	var orders []uuid.UUID
	var plans []string
	for i := range seen {
		orders, plans = append(orders, seen[i].orders()...), append(plans, seen[i].plans()...)
	}
	source := s.Processor.Source()
	ours, err := collectKeys[uuid.UUID](ctx, s.Pool, sqlListOwnOrders, source, orders)
	if err != nil {
		return err
	}
	sold, err := collectKeys[string](ctx, s.Pool, sqlListOwnPlans, source, plans)
	if err != nil {
		return err
	}
	for i := range seen {
		p := &seen[i]
		p.ours = slices.ContainsFunc(p.orders(), func(order uuid.UUID) bool { return ours[order] })
		p.plan = slices.ContainsFunc(p.plans(), func(plan string) bool { return sold[plan] })
	}
	return nil
}

// orders are those in the metadata of the payment.
func (p *position) orders() []uuid.UUID {
	var orders []uuid.UUID
	for _, m := range p.movements {
		if m.OrderID != nil {
			orders = append(orders, *m.OrderID)
		}
	}
	return orders
}

// plans are the subscriptions that the payment pays.
func (p *position) plans() []string {
	var plans []string
	for _, m := range p.movements {
		if m.SubscriptionID != "" {
			plans = append(plans, m.SubscriptionID)
		}
	}
	return plans
}

func collect[T any](ctx context.Context, db pg.Querier, sql string, args ...any) ([]T, error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[T])
}

func collectKeys[K comparable](ctx context.Context, db pg.Querier, sql string, args ...any) (map[K]bool, error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[K])
	keys := make(map[K]bool, len(found))
	for _, k := range found {
		keys[k] = true
	}
	return keys, err
}

const sqlListUnknownLines = `
select id, kind, at, amount_usd_micro, fee_usd_micro, currency, payment_id, case_id, order_id, subscription_id
from clearing_movement
where processor = $1 and payment_id = '' and kind not in ('fee', 'payout')
  and (at >= $2 and at < $3
    or id in (select subject from clearing_problem where processor = $1 and ended_at is null and payment_id = ''))
order by at, id`

// unknownLines are those of the processor's book that are about no payment and
// are neither fee nor payout.
func (s *Service) unknownLines(ctx context.Context, from, to time.Time) ([]ClearingProblem, error) {
	lines, err := collect[Movement](ctx, s.Pool, sqlListUnknownLines, s.Processor.Source(), from, to)
	if err != nil {
		return nil, fmt.Errorf("list the lines that nobody knows: %w", err)
	}
	problems := make([]ClearingProblem, 0, len(lines))
	for _, m := range lines {
		problems = append(problems, ClearingProblem{
			Subject: m.ID, Kind: unknownLine, Off: max(m.Amount, -m.Amount),
			Detail: fmt.Sprintf("the processor moved %s for %q of no payment", m.Amount, m.Kind),
		})
	}
	return problems, nil
}

const sqlInsertProblem = `
insert into clearing_problem (processor, subject, payment_id, kind, detail, off_usd_micro, found_at)
values (@processor, @subject, @payment, @kind, @detail, @off, @now)
on conflict (processor, subject) do update set kind = excluded.kind, detail = excluded.detail, off_usd_micro = excluded.off_usd_micro,
  found_at = case when clearing_problem.ended_at is null then clearing_problem.found_at else excluded.found_at end, ended_at = null
returning found_at = @now as is_new`

const sqlEndProblems = `
update clearing_problem set ended_at = $4
where processor = $1 and ended_at is null and payment_id = any($2) and subject <> all($3)`

const sqlCloseDays = `
update clearing_day set compared_at = $3 where processor = $1 and day = any($2) and compared_at is null`

// keepProblems keeps the problems, ends those of the payments looked at that are
// none any more, and closes the days.
func (s *Service) keepProblems(ctx context.Context, days []time.Time, touched []string, problems []ClearingProblem) error {
	source, now := s.Processor.Source(), s.Clock.Now()
	slices.SortStableFunc(problems, func(a, b ClearingProblem) int { return cmp.Compare(a.Subject, b.Subject) }) // one order of locks
	subjects := make([]string, 0, len(problems))
	fresh := make([]bool, len(problems))
	err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		for i, p := range problems {
			subjects = append(subjects, p.Subject)
			err := tx.QueryRow(ctx, sqlInsertProblem, pgx.NamedArgs{
				"processor": source, "subject": p.Subject, "payment": p.PaymentID, "kind": p.Kind, "detail": p.Detail, "off": p.Off, "now": now,
			}).Scan(&fresh[i])
			if err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, sqlEndProblems, source, touched, subjects, now); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, sqlCloseDays, source, days, now)
		return err
	})
	if err != nil {
		return fmt.Errorf("keep what the books differ in: %w", err)
	}
	for i, p := range problems {
		if fresh[i] {
			s.Logger.ErrorContext(ctx, "the processor's book and ours differ", slog.String("kind", p.Kind),
				slog.String("subject", p.Subject), slog.String("usd", p.Off.Decimal()), slog.String("detail", p.Detail))
		}
	}
	return nil
}

const sqlListProblems = `
select p.subject, p.payment_id, p.kind, p.detail, p.off_usd_micro, p.found_at,
  a.acknowledged_at, coalesce(a.acknowledged_by, '') as acknowledged_by, coalesce(a.note, '') as note
from clearing_problem p left join clearing_acknowledgement a using (processor, subject, found_at, kind, off_usd_micro)
where processor = $1 and p.ended_at is null order by p.found_at, p.subject`

// ClearingProblems lists what the two books differ in, the oldest first.
func (s *Service) ClearingProblems(ctx context.Context) ([]ClearingProblem, error) {
	if s.Processor == nil {
		return nil, nil
	}
	found, err := collect[ClearingProblem](ctx, s.Pool, sqlListProblems, s.Processor.Source())
	if err != nil {
		return nil, fmt.Errorf("list what the books differ in: %w", err)
	}
	return found, nil
}
