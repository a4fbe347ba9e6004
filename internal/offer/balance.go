package offer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/provider"
)

const (
	balanceEvery = 5 * time.Minute
	balanceFor   = 20 * time.Second // one question
)

// A Balance is what is left of our money at a cloud. Instants are wall time.
type Balance struct {
	Adapter string
	Amount  *money.USD `db:"balance_usd_micro"` // below zero: a debt; nil: it never said
	ReadAt  *time.Time // when it said so
	Trouble string     // why the last question was not answered; empty: it was
}

const sqlListBalances = `
select adapter, balance_usd_micro, read_at, trouble from provider_balance order by adapter`

// Balances lists what the clouds said last of our money there.
func (s *Service) Balances(ctx context.Context) ([]Balance, error) {
	rows, _ := s.Pool.Query(ctx, sqlListBalances)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByName[Balance])
	if err != nil {
		return nil, fmt.Errorf("read the balances at the clouds: %w", err)
	}
	return list, nil
}

// One node asks in five minutes: the one whose statement changes the row. One
// that dies before it has the answer is made up for by the next.
const sqlClaimBalance = `
insert into provider_balance (adapter, asked_at, trouble) values (@adapter, @now, '')
on conflict (adapter) do update set asked_at = excluded.asked_at where provider_balance.asked_at <= @before
returning true`

const sqlSaveBalance = `
update provider_balance set balance_usd_micro = $2, read_at = $3, trouble = '' where adapter = $1`

const sqlSaveBalanceTrouble = `update provider_balance set trouble = $2 where adapter = $1`

// ReadBalance asks a cloud what is left of our money there, if its API says so
// and nobody asked in the last five minutes. What it said before stays when it
// does not answer. That says nothing of its health: its breaker is not told.
func (s *Service) ReadBalance(ctx context.Context, name string) error {
	account, ok := s.Adapters[name].(provider.Accountant)
	if !ok {
		return nil
	}
	now, mine := s.Clock.Wall(), false
	err := s.Pool.QueryRow(ctx, sqlClaimBalance, pgx.NamedArgs{"adapter": name, "now": now, "before": now.Add(-balanceEvery)}).Scan(&mine)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("claim the question for the balance at %s: %w", name, err)
	}
	call, cancel := context.WithTimeout(ctx, balanceFor)
	defer cancel()
	amount, called := account.Balance(call)
	if ctx.Err() != nil {
		return ctx.Err() // this node stops
	}
	if called == nil {
		_, err = s.Pool.Exec(ctx, sqlSaveBalance, name, amount, s.Clock.Wall())
	} else {
		_, err = s.Pool.Exec(ctx, sqlSaveBalanceTrouble, name, troubleOf(called))
		called = fmt.Errorf("read the balance at %s: %w", name, called)
	}
	if err != nil {
		err = fmt.Errorf("keep the balance at %s: %w", name, err)
	}
	return errors.Join(called, err)
}

// TellsBalance reports whether a cloud's API says what is left of our money.
func (s *Service) TellsBalance(name string) bool {
	_, ok := s.Adapters[name].(provider.Accountant)
	return ok
}
