package wallet_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/wallet"
)

// Whatever the service believes, the database keeps no wallet and no charge
// whose parts disagree, and says which rule they break.
func TestTheLedgerRefusesWhatDoesNotAgree(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	teamID := h.scope().TeamID()
	h.credit(teamID, money.Dollar)
	h.start(teamID, wallet.PodRuntime, money.Rate(money.Cent))
	const charge = `insert into transfer (debit_account_id, credit_account_id, amount_usd_micro, code, key, team_id, kind, resource_id,
		segment_id, from_us, to_us, day_us, description, created_at)
		select account_id, receivable_account_id, 1, 'charge', 'bad', team_id, `
	for _, c := range []struct{ name, broken, sql string }{
		{"one account twice", "wallet_two_accounts", "update wallet set receivable_account_id = account_id where team_id = $1"},
		{"pods burn more than all", "wallet_pod_burn_is_a_part", "update wallet set pod_burn_usd_micro_per_hour = burn_usd_micro_per_hour + 1 where team_id = $1"},
		{"due in the past", "wallet_due_is_ahead", "update wallet set due_us = settled_us where team_id = $1"},
		{"exhausted in the past", "wallet_exhausts_ahead", "update wallet set exhausts_us = settled_us - 1 where team_id = $1"},
		{"arrears that never began", "wallet_arrears_began", "update wallet set arrears_step = 1 where team_id = $1"},
		{"arrears at no step", "wallet_arrears_began", "update wallet set arrears_us = 1 where team_id = $1"},
		{"an end of no arrears", "wallet_arrears_end_follows", "update wallet set arrears_end_us = 1 where team_id = $1"},
		{"money and debts", "wallet_owes_only_when_empty", "update wallet set receivable_usd_micro = 1 where team_id = $1"},
		{"a new wallet, due in the past", "wallet_due_is_ahead", `insert into wallet (team_id, account_id, receivable_account_id, balance_usd_micro,
			receivable_usd_micro, settled_us, due_us, burn_usd_micro_per_hour, pod_burn_usd_micro_per_hour, month_us, month_spent_usd_micro, version, created_at)
			select gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 0, 0, 2, 1, 0, 0, 1, 0, 0, now() from wallet where team_id = $1`},
		{"a charge of no kind", "transfer_charge_has_window", charge + "null, team_id, team_id, 1, 2, 0, '', now() from wallet where team_id = $1"},
		{"of no resource", "transfer_charge_has_window", charge + "'pod-runtime', null, team_id, 1, 2, 0, '', now() from wallet where team_id = $1"},
		{"of no segment", "transfer_charge_has_window", charge + "'pod-runtime', team_id, null, 1, 2, 0, '', now() from wallet where team_id = $1"},
		{"of no day", "transfer_charge_has_window", charge + "'pod-runtime', team_id, team_id, 1, 2, null, '', now() from wallet where team_id = $1"},
		{"of no start", "transfer_charge_has_window", charge + "'pod-runtime', team_id, team_id, null, 2, 0, '', now() from wallet where team_id = $1"},
		{"that ends where it starts", "transfer_charge_has_window", charge + "'pod-runtime', team_id, team_id, 2, 2, 0, '', now() from wallet where team_id = $1"},
		{"beyond its day", "transfer_charge_has_window", charge + "'pod-runtime', team_id, team_id, 2, 86400000001, 0, '', now() from wallet where team_id = $1"},
	} {
		_, err := h.pool.Exec(t.Context(), c.sql, teamID)
		var refused *pgconn.PgError
		if !errors.As(err, &refused) || refused.Code != "23514" || refused.ConstraintName != c.broken {
			t.Errorf("%s: %v; want %s", c.name, err, c.broken)
		}
	}
	h.sound()
}

// Whoever credits in a transaction of its own, which nobody tries again, is told
// of a payment that was posted before as well.
func TestACreditThatWasPostedIsFoundInAnyTransaction(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	scope := h.scope()
	c := wallet.Credit{TeamID: scope.TeamID(), Amount: money.Dollar, Source: wallet.Test, Key: id.New().String(), At: h.clock.Now()}
	for i := range 3 {
		err := pgx.BeginFunc(t.Context(), h.pool, func(tx pgx.Tx) error {
			posted, err := h.w.CreditTx(t.Context(), tx, c)
			if posted != (i == 0) {
				t.Errorf("credit %d: posted %t", i, posted)
			}
			return err
		})
		if err != nil {
			t.Errorf("credit %d: %v", i, err)
		}
	}
	for i := range 3 {
		h.do(func(ctx context.Context, tx pgx.Tx) error {
			posted, err := h.w.CreditTx(ctx, tx, c)
			if posted {
				t.Errorf("again %d: posted", i)
			}
			return err
		})
	}
	h.wantBalance(scope, money.Dollar)
}
