package wallet

import (
	"context"
	"fmt"
	"maps"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pg"
)

// What was read of the segments is as of the statement's start, of the wallet
// as of the lock: read_version tells whether a wait lay between the two.
const sqlLockBook = `
with w as materialized (
  select team_id, account_id, receivable_account_id, balance_usd_micro, receivable_usd_micro,
    settled_us, due_us, burn_usd_micro_per_hour, pod_burn_usd_micro_per_hour,
    exhausts_us, exhausted_us, switch_off_us, month_us, month_spent_usd_micro, month_limit_usd_micro, version,
    warned, warn_us, empty_us, arrears_us, arrears_step, arrears_end_us, spend_us, spend_month_us, spend_stage, limit_us,
    low_usd_micro, low_us, low_told
  from wallet where team_id = $1 for update
)
select w.team_id, w.account_id, w.receivable_account_id, w.balance_usd_micro, w.receivable_usd_micro,
  w.settled_us, w.due_us, w.burn_usd_micro_per_hour, w.pod_burn_usd_micro_per_hour,
  w.exhausts_us, w.exhausted_us, w.switch_off_us, w.month_us, w.month_spent_usd_micro, w.month_limit_usd_micro,
  w.warned, w.warn_us, w.empty_us, w.arrears_us, w.arrears_step, w.arrears_end_us, w.spend_us, w.spend_month_us, w.spend_stage, w.limit_us,
  w.low_usd_micro, w.low_us, w.low_told,
  w.version, (select version from wallet where team_id = $1) as read_version,
  s.id as segment_id, s.resource_id, s.kind, s.rate_usd_micro_per_hour, s.started_us, s.stopped_us, s.description
from w left join segment s on s.team_id = w.team_id and coalesce(s.stopped_us, 9223372036854775807) > w.settled_us
order by s.kind, s.started_us, s.id`

const sqlListUnsettled = `
select s.id, s.team_id, s.resource_id, s.kind, s.rate_usd_micro_per_hour, s.started_us, s.stopped_us, s.description
from wallet w join segment s on s.team_id = w.team_id and coalesce(s.stopped_us, 9223372036854775807) > w.settled_us
where w.team_id = $1
order by s.kind, s.started_us, s.id`

type lockedRow struct {
	bookRow
	Version     int64   `db:"version"`
	ReadVersion int64   `db:"read_version"`
	Description *string `db:"description"`
}

// lock locks a team's wallet and reads its book. A statement that waited for
// the lock saw the segments as they were before the wait: they are read again.
// Every change of a segment is saved with a new version of its wallet.
func (s *Service) lock(ctx context.Context, tx pgx.Tx, teamID uuid.UUID) (*book, error) {
	rows, err := tx.Query(ctx, sqlLockBook, teamID)
	if err != nil {
		return nil, fmt.Errorf("lock wallet of team %s: %w", teamID, err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[lockedRow])
	if err != nil {
		return nil, fmt.Errorf("lock wallet of team %s: %w", teamID, err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("lock wallet of team %s: it has none", teamID)
	}
	b := &book{wallet: found[0].walletRow}
	if found[0].Version != found[0].ReadVersion {
		rows, err := tx.Query(ctx, sqlListUnsettled, teamID)
		if err != nil {
			return nil, fmt.Errorf("read segments of team %s: %w", teamID, err)
		}
		b.segments, err = pgx.CollectRows(rows, pgx.RowToStructByName[segmentRow])
		if err != nil {
			return nil, fmt.Errorf("read segments of team %s: %w", teamID, err)
		}
		return b, nil
	}
	for i := range found {
		if r := &found[i]; r.SegmentID != nil {
			g := r.segment()
			g.Description = *r.Description
			b.segments = append(b.segments, g)
		}
	}
	return b, nil
}

const sqlReadBook = `
select w.team_id, w.account_id, w.receivable_account_id, w.balance_usd_micro, w.receivable_usd_micro,
  w.settled_us, w.due_us, w.burn_usd_micro_per_hour, w.pod_burn_usd_micro_per_hour,
  w.exhausts_us, w.exhausted_us, w.switch_off_us, w.month_us, w.month_spent_usd_micro, w.month_limit_usd_micro,
  w.warned, w.warn_us, w.empty_us, w.arrears_us, w.arrears_step, w.arrears_end_us, w.spend_us, w.spend_month_us, w.spend_stage, w.limit_us,
  w.low_usd_micro, w.low_us, w.low_told,
  s.id as segment_id, s.resource_id, s.kind, s.rate_usd_micro_per_hour, s.started_us, s.stopped_us
from wallet w
left join segment s on s.team_id = w.team_id and coalesce(s.stopped_us, 9223372036854775807) > w.settled_us
where w.team_id = $1`

// A bookRow is the wallet beside one of its unsettled segments, if any.
type bookRow struct {
	walletRow
	SegmentID  *uuid.UUID `db:"segment_id"`
	ResourceID *uuid.UUID `db:"resource_id"`
	Kind       *Kind      `db:"kind"`
	Rate       *int64     `db:"rate_usd_micro_per_hour"`
	StartedUS  *int64     `db:"started_us"`
	StoppedUS  *int64     `db:"stopped_us"`
}

func (r *bookRow) segment() segmentRow {
	return segmentRow{
		ID: *r.SegmentID, TeamID: r.TeamID, ResourceID: *r.ResourceID, Kind: *r.Kind,
		Rate: money.Rate(*r.Rate), StartedUS: *r.StartedUS, StoppedUS: r.StoppedUS,
	}
}

// readBook reads a team's book in one statement, without a lock.
func readBook(ctx context.Context, q pg.Querier, teamID uuid.UUID) (*book, error) {
	rows, err := q.Query(ctx, sqlReadBook, teamID)
	if err != nil {
		return nil, fmt.Errorf("read wallet of team %s: %w", teamID, err)
	}
	return collectBook(rows, teamID)
}

func collectBook(rows pgx.Rows, teamID uuid.UUID) (*book, error) {
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[bookRow])
	if err != nil {
		return nil, fmt.Errorf("read wallet of team %s: %w", teamID, err)
	}
	return bookOf(teamID, found)
}

const sqlInsertTransfer = `
insert into transfer (debit_account_id, credit_account_id, amount_usd_micro, code, key, team_id, kind, resource_id,
  segment_id, from_us, to_us, day_us, reference_id, description, created_at)
values (@debit, @credit, @amount, @code, @key, @team, @kind, @resource, @segment, @from, @to, @day, @reference, @description, @at)`

const sqlInsertMark = `
insert into day_mark (team_id, kind, day_us, resource_id, from_us, to_us)
values ($1, $2, $3, $4, $5, $6)
on conflict (team_id, kind, day_us, resource_id) do nothing`

const sqlInsertSegment = `
insert into segment (id, team_id, resource_id, kind, rate_usd_micro_per_hour, started_us, stopped_us, description)
values ($1, $2, $3, $4, $5, $6, $7, $8)`

const sqlStopSegment = `update segment set stopped_us = $2 where id = $1`

// A credit that changes nothing but the wallet is one statement: no row is
// touched when its key was posted before.
const sqlPostCredit = `
with posted as (
  insert into transfer (debit_account_id, credit_account_id, amount_usd_micro, code, key, team_id, kind, resource_id,
    segment_id, from_us, to_us, day_us, reference_id, description, created_at)
  values (@debit, @credit, @amount, @code, @key, @team, @kind, @resource, @segment, @from, @to, @day, @reference, @description, @at)
  on conflict (key) do nothing
  returning 1
)
update wallet set balance_usd_micro = @balance, receivable_usd_micro = @receivable, settled_us = @settled, due_us = @due,
  burn_usd_micro_per_hour = @burn, pod_burn_usd_micro_per_hour = @pod_burn, exhausts_us = @exhausts,
  exhausted_us = @exhausted, switch_off_us = @switch_off, month_us = @month, month_spent_usd_micro = @spent,
  warned = @warned, warn_us = @warn, empty_us = @empty, arrears_us = @arrears, arrears_step = @step,
  arrears_end_us = @arrears_end,
  spend_us = @spend_look, spend_month_us = @spend_month, spend_stage = @stage, limit_us = @limit,
  low_usd_micro = @low_below, low_us = @low, low_told = @low_told, next_us = @next,
  version = version + 1
where team_id = @team and exists (select from posted)`

const sqlUpdateWallet = `
update wallet set balance_usd_micro = @balance, receivable_usd_micro = @receivable, settled_us = @settled, due_us = @due,
  burn_usd_micro_per_hour = @burn, pod_burn_usd_micro_per_hour = @pod_burn, exhausts_us = @exhausts,
  exhausted_us = @exhausted, switch_off_us = @switch_off, month_us = @month, month_spent_usd_micro = @spent,
  warned = @warned, warn_us = @warn, empty_us = @empty, arrears_us = @arrears, arrears_step = @step,
  arrears_end_us = @arrears_end,
  spend_us = @spend_look, spend_month_us = @spend_month, spend_stage = @stage, limit_us = @limit,
  low_usd_micro = @low_below, low_us = @low, low_told = @low_told, next_us = @next,
  version = version + 1
where team_id = @team`

// save writes what happened to a locked book, in one round trip.
func (s *Service) save(ctx context.Context, tx pgx.Tx, b *book) error {
	if !b.dirty {
		return nil
	}
	batch := &pgx.Batch{}
	for i := range b.segments {
		// Closing comes before opening: one open segment per resource.
		if g := &b.segments[i]; g.change == closed {
			batch.Queue(sqlStopSegment, g.ID, g.StoppedUS)
		}
	}
	for i := range b.segments {
		if g := &b.segments[i]; g.change == opened {
			batch.Queue(sqlInsertSegment, g.ID, g.TeamID, g.ResourceID, g.Kind, g.Rate, g.StartedUS, g.StoppedUS, g.Description)
		}
	}
	w := &b.wallet
	for i := range b.postings {
		batch.Queue(sqlInsertTransfer, b.postings[i].args(w.TeamID))
	}
	for _, m := range b.marks {
		batch.Queue(sqlInsertMark, w.TeamID, m.Kind, dayStart(m.From), m.Resource, m.From, m.To)
	}
	batch.Queue(sqlUpdateWallet, w.args())
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("save wallet of team %s: %w", w.TeamID, err)
	}
	return nil
}

func (w *walletRow) args() pgx.NamedArgs {
	_, next := w.next()
	return pgx.NamedArgs{
		"team": w.TeamID, "balance": w.Balance, "receivable": w.Receivable, "settled": w.SettledUS, "due": w.DueUS,
		"burn": w.Burn, "pod_burn": w.PodBurn, "exhausts": w.ExhaustsUS, "exhausted": w.ExhaustedUS,
		"switch_off": w.SwitchOffUS, "month": w.MonthUS, "spent": w.MonthSpent,
		"warned": w.Warned, "warn": w.WarnUS, "empty": w.EmptyUS, "arrears": w.ArrearsUS, "step": w.ArrearsStep, "arrears_end": w.ArrearsEndUS,
		"spend_look": w.SpendUS, "spend_month": w.SpendMonthUS, "stage": w.SpendStage, "limit": w.LimitUS, "next": next,
		"low_below": w.LowBelow, "low": w.LowUS, "low_told": w.LowTold,
	}
}

// plain says that all there is to write is one posting and the wallet.
func (b *book) plain() bool {
	for i := range b.segments {
		if b.segments[i].change != unchanged {
			return false
		}
	}
	return len(b.postings) == 1 && len(b.marks) == 0
}

// savePlain writes a plain book in one statement. It says false, and has
// written nothing, when the posting's key was posted before.
func (s *Service) savePlain(ctx context.Context, tx pgx.Tx, b *book) (bool, error) {
	args := b.wallet.args()
	maps.Copy(args, b.postings[0].args(b.wallet.TeamID))
	tag, err := tx.Exec(ctx, sqlPostCredit, args)
	if err != nil {
		return false, fmt.Errorf("save wallet of team %s: %w", b.wallet.TeamID, err)
	}
	return tag.RowsAffected() == 1, nil
}

func (p *posting) args(teamID uuid.UUID) pgx.NamedArgs {
	args := pgx.NamedArgs{
		"debit": p.Debit, "credit": p.Credit, "amount": p.Amount, "code": p.Code, "key": p.Key, "team": teamID,
		"kind": nil, "resource": nil, "segment": nil, "from": nil, "to": nil, "day": nil,
		"reference": nil, "description": p.Description, "at": clock.FromMicros(p.AtUS),
	}
	if p.Reference != "" {
		args["reference"] = p.Reference
	}
	if p.Kind == "" {
		return args
	}
	args["kind"], args["resource"] = p.Kind, p.Resource
	switch {
	case p.Code == charge:
		args["key"] = usageKey(p.Segment, p.From)
		args["segment"], args["from"], args["to"], args["day"] = p.Segment, p.From, p.To, p.Day
	case p.Code == remainder:
		args["key"] = "writeoff:" + usageKey(p.Segment, p.From)
		args["reference"] = p.Segment.String()
	default:
		args["segment"] = p.Segment
	}
	return args
}

// bookOf puts the rows of one wallet together.
func bookOf(teamID uuid.UUID, found []bookRow) (*book, error) {
	if len(found) == 0 {
		return nil, fmt.Errorf("read wallet of team %s: it has none", teamID)
	}
	b := &book{wallet: found[0].walletRow, segments: make([]segmentRow, 0, len(found))}
	for i := range found {
		if r := &found[i]; r.SegmentID != nil {
			b.segments = append(b.segments, r.segment())
		}
	}
	return b, nil
}
