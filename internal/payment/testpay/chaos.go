package testpay

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/pg"
)

// ErrChaos occurs for a delay that is not from 0 to 300 seconds.
var ErrChaos = fault.New(fault.Invalid, "test_chaos", "delay_seconds must be from 0 to 300.")

// Chaos is how badly events are delivered, on purpose: what the real Stripe
// does at times, and what nobody may lose money by.
type Chaos struct {
	Duplicate    bool `db:"duplicate" json:"duplicate"` // each event comes twice
	Reorder      bool `db:"reorder" json:"reorder"`     // events come in any order
	DelaySeconds int  `db:"delay_seconds" json:"delay_seconds"`
}

// scatter is over how long events of any order are spread at least.
const scatter = 2 * time.Second

const sqlReadChaos = `select duplicate, reorder, delay_seconds from testpay_chaos`

const sqlSetChaos = `
insert into testpay_chaos (single, duplicate, reorder, delay_seconds) values (true, $1, $2, $3)
on conflict (single) do update set duplicate = excluded.duplicate, reorder = excluded.reorder, delay_seconds = excluded.delay_seconds`

// SetChaos changes how the events from now on are delivered. The fault is
// ErrChaos.
func (p *Processor) SetChaos(ctx context.Context, c Chaos) error {
	if c.DelaySeconds < 0 || c.DelaySeconds > 300 {
		return ErrChaos
	}
	if _, err := p.Pool.Exec(ctx, sqlSetChaos, c.Duplicate, c.Reorder, c.DelaySeconds); err != nil {
		return fmt.Errorf("set the chaos of test events: %w", err)
	}
	return nil
}

func readChaos(ctx context.Context, q pg.Querier) (Chaos, error) {
	rows, err := q.Query(ctx, sqlReadChaos)
	if err != nil {
		return Chaos{}, fmt.Errorf("read the chaos of test events: %w", err)
	}
	c, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Chaos])
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return Chaos{}, fmt.Errorf("read the chaos of test events: %w", err)
	}
	return c, nil
}

// copies is how often an event is delivered again.
func (c Chaos) copies() int {
	if c.Duplicate {
		return 1
	}
	return 0
}

// wait is how late an event is sent.
func (c Chaos) wait() time.Duration {
	delay := time.Duration(c.DelaySeconds) * time.Second
	if !c.Reorder {
		return delay
	}
	span := max(delay, scatter)
	return time.Duration(binary.BigEndian.Uint64(id.Bytes(8)) % uint64(span))
}

// A Ledger is what this processor has collected, for people who test.
type Ledger struct {
	Chaos    Chaos       `json:"chaos"`
	Payments []Payment   `json:"payments"`
	Cards    []SavedCard `json:"cards"`
}

// A Payment is a paid top-up with what became of it.
type Payment struct {
	ID        string    `db:"payment_id" json:"id"`
	SessionID string    `db:"id" json:"session_id"`
	TeamID    string    `db:"team_id" json:"team_id"`
	Cents     int64     `db:"cents" json:"amount_cents"`
	CreatedAt time.Time `db:"created_at" json:"created_at"`
	Cases     []Case    `db:"-" json:"cases"`
}

const sqlListPayments = `
select payment_id, id, team_id::text as team_id, amount_usd_micro / 10000 as cents, created_at from testpay_session
where status = 'complete' and mode in ('payment', 'charge') order by created_at desc, id limit 200`

const sqlListCases = `
select c.id, c.session_id, s.payment_id, c.amount_usd_micro, c.status, c.created_at
from testpay_case c join testpay_session s on s.id = c.session_id
where c.session_id = any($1) order by c.created_at, c.id`

// Ledger lists the newest paid top-ups and saved cards.
func (p *Processor) Ledger(ctx context.Context) (Ledger, error) {
	chaos, err := readChaos(ctx, p.Pool)
	if err != nil {
		return Ledger{}, err
	}
	rows, err := p.Pool.Query(ctx, sqlListPayments)
	if err != nil {
		return Ledger{}, fmt.Errorf("list test payments: %w", err)
	}
	payments, err := pgx.CollectRows(rows, pgx.RowToStructByName[Payment])
	if err != nil {
		return Ledger{}, fmt.Errorf("list test payments: %w", err)
	}
	sessions, at := make([]string, len(payments)), make(map[string]int, len(payments))
	for i := range payments {
		sessions[i], at[payments[i].SessionID], payments[i].Cases = payments[i].SessionID, i, []Case{}
	}
	if rows, err = p.Pool.Query(ctx, sqlListCases, sessions); err != nil {
		return Ledger{}, fmt.Errorf("list test cases: %w", err)
	}
	cases, err := pgx.CollectRows(rows, pgx.RowToStructByName[Case])
	if err != nil {
		return Ledger{}, fmt.Errorf("list test cases: %w", err)
	}
	for _, c := range cases {
		one := &payments[at[c.SessionID]]
		one.Cases = append(one.Cases, c)
	}
	cards, err := p.cards(ctx)
	if err != nil {
		return Ledger{}, err
	}
	return Ledger{Chaos: chaos, Payments: payments, Cards: cards}, nil
}
