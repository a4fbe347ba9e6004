package wallet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/team"
)

// Totals is money by what it was for. All are zero or above.
type Totals struct {
	Credits, Charges, Refunds, Debits money.USD
}

// Net is by how much the totals change a balance.
func (t Totals) Net() money.USD { return t.Credits + t.Refunds - t.Charges - t.Debits }

func (t *Totals) add(c code, amount money.USD) {
	switch c {
	case credit:
		t.Credits += amount
	case charge:
		t.Charges += amount
	case refund:
		t.Refunds += amount
	case debit:
		t.Debits += amount
	default: // between a team's own accounts, or the house's
	}
}

// A Month is what one UTC calendar month did to a team's balance:
// Opening + Net() = Closing, which is the Opening of the next.
type Month struct {
	Start, End time.Time
	Opening    money.USD
	Totals
	Closing money.USD
}

// A Usage is what one resource cost on one UTC day.
type Usage struct {
	Day         time.Time
	Kind        Kind
	ResourceID  uuid.UUID
	Description string
	Charged     money.USD
	Refunded    money.USD // usage given back on this day, whenever it ran
	Ran         time.Duration
}

// Net is what the day cost after refunds.
func (u Usage) Net() money.USD { return u.Charged - u.Refunded }

// A Period is all that happened to a team's money in some UTC days.
type Period struct {
	Start, End time.Time
	Opening    money.USD // the shown balance at Start
	Totals
	Closing money.USD     // the shown balance at End, or now when that is earlier
	Money   []Transaction // credits, refunds and debits, the oldest first
	Usage   []Usage       // by day, kind and resource
}

const sqlListMonths = `
select (extract(epoch from date_trunc('month',
    case code when 'charge' then to_timestamp(day_us / 1000000) else created_at end at time zone 'utc'
  )) * 1000000)::bigint as month_us, code, sum(amount_usd_micro)::bigint as amount_usd_micro
from transfer where team_id = $1 and code in ('credit', 'charge', 'refund', 'debit')
group by 1, 2`

const sqlFindOpened = `select created_at from wallet where team_id = $1`

// Months lists every UTC month since the wallet of the scope's team was
// opened, the newest first; the first of them runs until now.
func (s *Service) Months(ctx context.Context, scope team.Scope, now time.Time) ([]Month, error) {
	var opened time.Time
	sums := map[int64]*Totals{}
	at := func(us int64) *Totals {
		month := monthStart(us)
		if sums[month] == nil {
			sums[month] = &Totals{}
		}
		return sums[month]
	}
	err := s.look(ctx, scope.TeamID(), now, func(tx pgx.Tx, seen *book) error {
		if err := tx.QueryRow(ctx, sqlFindOpened, scope.TeamID()).Scan(&opened); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, sqlListMonths, scope.TeamID())
		if err != nil {
			return err
		}
		var month int64
		var what code
		var amount money.USD
		if _, err = pgx.ForEachRow(rows, []any{&month, &what, &amount}, func() error {
			at(month).add(what, amount)
			return nil
		}); err != nil {
			return err
		}
		for _, p := range seen.postings {
			if p.Code == charge {
				at(p.From).add(charge, p.Amount)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the months of team %s: %w", scope.TeamID(), err)
	}
	first := monthStart(opened.UnixMicro())
	for us := range sums {
		first = min(first, us)
	}
	return monthsOf(sums, first, now), nil
}

// monthsOf puts the totals of months, from the first to now's, in a row.
func monthsOf(sums map[int64]*Totals, first int64, now time.Time) []Month {
	var months []Month
	var balance money.USD
	for start := clock.FromMicros(first); !start.After(now); start = start.AddDate(0, 1, 0) {
		m := Month{Start: start, End: start.AddDate(0, 1, 0), Opening: balance}
		if t := sums[start.UnixMicro()]; t != nil {
			m.Totals = *t
		}
		balance += m.Net()
		m.Closing = balance
		months = append(months, m)
	}
	slices.Reverse(months)
	return months
}

// look reads a team's book as it is at now, and what else is asked for, in one
// snapshot.
func (s *Service) look(ctx context.Context, teamID uuid.UUID, now time.Time, fn func(tx pgx.Tx, seen *book) error) error {
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, s.Pool, snapshot, func(tx pgx.Tx) error {
		b, err := readBook(ctx, tx, teamID)
		if err != nil {
			return err
		}
		seen, err := b.at(now.UnixMicro())
		if err != nil {
			return err
		}
		return fn(tx, seen)
	})
}

const sqlFindOpening = `
select coalesce(sum(case when code in ('credit', 'refund') then amount_usd_micro else -amount_usd_micro end), 0)::bigint
from transfer
where team_id = $1 and (code in ('credit', 'refund', 'debit') and created_at < $2 or code = 'charge' and day_us < $3)`

const sqlListPeriodMoney = `
select id, code, key, amount_usd_micro, kind, resource_id, coalesce(reference_id, '') as reference_id, description, created_at
from transfer
where team_id = $1 and code in ('credit', 'refund', 'debit') and created_at >= $2 and created_at < $3
order by created_at, id`

const sqlListPeriodUsage = `
select day_us, kind, resource_id, sum(amount_usd_micro)::bigint as charged, sum(to_us - from_us)::bigint as ran_us
from transfer
where team_id = $1 and code = 'charge' and day_us >= $2 and day_us < $3
group by day_us, kind, resource_id`

// Period reads what happened to the money of the scope's team in the UTC days
// from start to end, which are midnights, as of now.
func (s *Service) Period(ctx context.Context, scope team.Scope, start, end, now time.Time) (Period, error) {
	p := Period{Start: start, End: end}
	err := s.look(ctx, scope.TeamID(), now, func(tx pgx.Tx, seen *book) error {
		var paid []moneyRow
		days := usageDays{}
		batch := &pgx.Batch{}
		batch.Queue(sqlFindOpening, scope.TeamID(), start, start.UnixMicro()).QueryRow(func(row pgx.Row) error {
			return row.Scan(&p.Opening)
		})
		batch.Queue(sqlListPeriodMoney, scope.TeamID(), start, end).Query(func(rows pgx.Rows) (err error) {
			paid, err = pgx.CollectRows(rows, pgx.RowToStructByName[moneyRow])
			return err
		})
		batch.Queue(sqlListPeriodUsage, scope.TeamID(), start.UnixMicro(), end.UnixMicro()).Query(days.read)
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return err
		}
		for i := range seen.postings {
			switch w := &seen.postings[i]; {
			case w.Code != charge:
			case w.From < start.UnixMicro():
				p.Opening -= w.Amount
			case w.From < end.UnixMicro():
				days.add(usageKeyOf{dayStart(w.From), w.Kind, w.Resource}, w.Amount, w.To-w.From)
			}
		}
		p.take(paid, days)
		return p.readNames(ctx, tx)
	})
	if err != nil {
		return Period{}, fmt.Errorf("read the money of team %s from %s: %w", scope.TeamID(), start.Format(time.DateOnly), err)
	}
	return p, nil
}

// usageKeyOf names a resource on one day.
type usageKeyOf struct {
	dayUS    int64
	kind     Kind
	resource uuid.UUID
}

type usageDays map[usageKeyOf]*Usage

func (d usageDays) add(key usageKeyOf, amount money.USD, ran int64) {
	u := d.at(key)
	u.Charged += amount
	u.Ran += time.Duration(ran) * time.Microsecond
}

func (d usageDays) at(key usageKeyOf) *Usage {
	if d[key] == nil {
		d[key] = &Usage{Day: clock.FromMicros(key.dayUS), Kind: key.kind, ResourceID: key.resource}
	}
	return d[key]
}

func (d usageDays) read(rows pgx.Rows) error {
	var key usageKeyOf
	var amount money.USD
	var ran int64
	_, err := pgx.ForEachRow(rows, []any{&key.dayUS, &key.kind, &key.resource, &amount, &ran}, func() error {
		d.add(key, amount, ran)
		return nil
	})
	return err
}

// take sums up what was read.
func (p *Period) take(paid []moneyRow, days usageDays) {
	for _, r := range paid {
		p.Money = append(p.Money, r.transaction())
		p.add(r.Code, r.Amount)
		if r.Code == refund && r.Kind != nil && r.Resource != nil {
			days.at(usageKeyOf{dayStart(r.CreatedAt.UnixMicro()), *r.Kind, *r.Resource}).Refunded += r.Amount
		}
	}
	for _, u := range days {
		p.Usage = append(p.Usage, *u)
		p.add(charge, u.Charged)
	}
	slices.SortFunc(p.Usage, func(a, b Usage) int {
		return cmp.Or(a.Day.Compare(b.Day), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ResourceID.String(), b.ResourceID.String()))
	})
	p.Closing = p.Opening + p.Net()
}

// readNames reads what the period's resources are called.
func (p *Period) readNames(ctx context.Context, tx pgx.Tx) error {
	var resources []uuid.UUID
	for _, u := range p.Usage {
		resources = append(resources, u.ResourceID)
	}
	names, err := listNames(ctx, tx, resources)
	if err != nil {
		return err
	}
	for i := range p.Usage {
		p.Usage[i].Description = names[p.Usage[i].ResourceID]
	}
	return nil
}
