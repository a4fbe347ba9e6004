package wallet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/team"
)

// MaxTransactions is the largest page of Transactions.
const MaxTransactions = 1000

// transferSpace is the namespace of the ids of single transfers.
var transferSpace = uuid.MustParse("5b1f4a34-91f6-4f6e-8f0e-6f2a3a1c7d52")

const sqlListMoney = `
select id, code, key, amount_usd_micro, kind, resource_id, coalesce(reference_id, '') as reference_id, description, created_at
from transfer
where team_id = $1 and code in ('credit', 'refund', 'debit') and id < $2
order by id desc limit $3`

type moneyRow struct {
	ID          int64      `db:"id"`
	Code        code       `db:"code"`
	Key         string     `db:"key"`
	Amount      money.USD  `db:"amount_usd_micro"`
	Kind        *Kind      `db:"kind"`
	Resource    *uuid.UUID `db:"resource_id"`
	Reference   string     `db:"reference_id"`
	Description string     `db:"description"`
	CreatedAt   time.Time  `db:"created_at"`
}

const sqlListDays = `
select day_us, resource_id, sum(amount_usd_micro)::bigint as amount_usd_micro,
  greatest(min(from_us), day_us) as from_us, sum(to_us - from_us)::bigint as ran_us
from transfer
where team_id = $1 and kind = $2 and code = 'charge' and (day_us, resource_id) < ($3, $4)
group by day_us, resource_id
order by day_us desc, resource_id desc limit $5`

const sqlListMarks = `
select day_us, resource_id, 0::bigint as amount_usd_micro, from_us, to_us - from_us as ran_us
from day_mark
where team_id = $1 and kind = $2 and (day_us, resource_id) < ($3, $4)
order by day_us desc, resource_id desc limit $5`

const sqlListNames = `
select distinct on (resource_id) resource_id, description from segment
where resource_id = any($1) order by resource_id, started_us desc`

// A history is one page's material: up to limit + 1 rows of each list.
type history struct {
	money         []moneyRow
	pods, storage []dayRow
	names         map[uuid.UUID]string
}

// Transactions lists the history of the scope's team as of now, the newest
// first: money rows one by one, usage as one row per resource and UTC day.
// A page has up to limit rows, at most MaxTransactions; next is the cursor of
// the page after it, empty when there is none. The sum of all rows is the
// balance of the same now. The fault is ErrCursor.
func (s *Service) Transactions(ctx context.Context, scope team.Scope, now time.Time, limit int, from string) (rows []Transaction, next string, err error) {
	at, err := parseCursor(from)
	if err != nil {
		return nil, "", err
	}
	limit = min(max(limit, 1), MaxTransactions)
	var h history
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, s.Pool, snapshot, func(tx pgx.Tx) error {
		h, err = readHistory(ctx, tx, scope.TeamID(), now, at, limit)
		return err
	})
	if err != nil {
		return nil, "", err
	}
	m, p, v := quotas(limit, len(h.money), len(h.pods), len(h.storage))
	more := m < len(h.money) || p < len(h.pods) || v < len(h.storage)
	rows = make([]Transaction, 0, m+p+v)
	for _, r := range h.money[:m] {
		rows = append(rows, r.transaction())
		at.Money = r.ID
	}
	for _, r := range h.pods[:p] {
		rows = append(rows, r.transaction(PodRuntime, h.names[r.Resource]))
		at.Pods = position{DayUS: r.DayUS, Resource: r.Resource}
	}
	for _, r := range h.storage[:v] {
		rows = append(rows, r.transaction(VolumeStorage, h.names[r.Resource]))
		at.Storage = position{DayUS: r.DayUS, Resource: r.Resource}
	}
	slices.SortStableFunc(rows, func(a, b Transaction) int { return b.CreatedAt.Compare(a.CreatedAt) })
	if !more {
		return rows, "", nil
	}
	return rows, at.String(), nil
}

// readHistory reads, in one snapshot, what a page may need.
func readHistory(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, now time.Time, at cursor, limit int) (history, error) {
	var h history
	var b *book
	var pods, podMarks, storage, storageMarks []dayRow
	batch := &pgx.Batch{}
	batch.Queue(sqlReadBook, teamID).Query(func(rows pgx.Rows) (err error) {
		b, err = collectBook(rows, teamID)
		return err
	})
	batch.Queue(sqlListMoney, teamID, at.Money, limit+1).Query(func(rows pgx.Rows) (err error) {
		h.money, err = pgx.CollectRows(rows, pgx.RowToStructByName[moneyRow])
		return err
	})
	list := func(sql string, kind Kind, after position, into *[]dayRow) {
		batch.Queue(sql, teamID, kind, after.DayUS, after.Resource, limit+1).Query(func(rows pgx.Rows) (err error) {
			*into, err = collectDays(rows)
			return err
		})
	}
	list(sqlListDays, PodRuntime, at.Pods, &pods)
	list(sqlListMarks, PodRuntime, at.Pods, &podMarks)
	list(sqlListDays, VolumeStorage, at.Storage, &storage)
	list(sqlListMarks, VolumeStorage, at.Storage, &storageMarks)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return history{}, fmt.Errorf("list transactions of team %s: %w", teamID, err)
	}
	seen, err := b.at(now.UnixMicro())
	if err != nil {
		return history{}, err
	}
	h.pods = firstDays(limit+1, pods, podMarks, seen.unposted(PodRuntime, at.Pods))
	h.storage = firstDays(limit+1, storage, storageMarks, seen.unposted(VolumeStorage, at.Storage))
	return h, h.readNames(ctx, tx)
}

// collectDays reads day rows: a page has a thousand, so one set of places is
// scanned into again and again.
func collectDays(rows pgx.Rows) (days []dayRow, err error) {
	var r dayRow
	_, err = pgx.ForEachRow(rows, []any{&r.DayUS, &r.Resource, &r.Amount, &r.FromUS, &r.RanUS}, func() error {
		days = append(days, r)
		return nil
	})
	return days, err
}

// firstDays merges lists that hold their first n rows, or all, into the first
// n of them all.
func firstDays(n int, lists ...[]dayRow) []dayRow {
	merged := mergeDays(lists...)
	return merged[:min(n, len(merged))]
}

// readNames reads what the page's resources are called.
func (h *history) readNames(ctx context.Context, tx pgx.Tx) (err error) {
	named := map[uuid.UUID]bool{} // a resource has a row a day
	for _, r := range slices.Concat(h.pods, h.storage) {
		named[r.Resource] = true
	}
	h.names, err = listNames(ctx, tx, slices.Collect(maps.Keys(named)))
	return err
}

// listNames says what resources are called, as their newest segment has it.
func listNames(ctx context.Context, tx pgx.Tx, resources []uuid.UUID) (map[uuid.UUID]string, error) {
	rows, err := tx.Query(ctx, sqlListNames, resources)
	if err != nil {
		return nil, fmt.Errorf("list resource names: %w", err)
	}
	names := make(map[uuid.UUID]string)
	var resource uuid.UUID
	var name string
	_, err = pgx.ForEachRow(rows, []any{&resource, &name}, func() error {
		names[resource] = name
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list resource names: %w", err)
	}
	return names, nil
}

// transaction writes a money row as the team sees it.
func (r moneyRow) transaction() Transaction {
	t := Transaction{
		ID: id.Derive(transferSpace, r.Key), CreatedAt: r.CreatedAt, Type: string(r.Code),
		Amount: r.Amount, Description: r.Description, ReferenceID: r.Reference,
	}
	if r.Code == debit {
		t.Amount = -r.Amount
	}
	if r.Kind != nil && r.Resource != nil {
		t.ResourceType, t.ResourceID = *r.Kind, *r.Resource
	}
	if r.Code == refund && t.ReferenceID == "" {
		t.ReferenceID = t.ID.String()
	}
	return t
}
