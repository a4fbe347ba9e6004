package payment_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/team/teamtest"
)

// demote makes the admin who saved the card a viewer, beside another admin.
func (p *purser) demote() (payer, admin team.Scope) {
	p.t.Helper()
	admin = teamtest.Join(p.t, p.pool, p.scope.TeamID(), team.Admin)
	_, err := p.pool.Exec(p.t.Context(), `update membership set role = 'viewer' where team_id = $1 and user_id = $2`, p.scope.TeamID(), p.scope.UserID())
	p.must(err)
	payer, err = p.teams.Authorize(p.t.Context(), team.Person{ID: p.scope.UserID()}, p.scope.TeamID(), team.Read)
	p.must(err)
	return payer, admin
}

// Who saved a card may take it away without being an admin any more; others
// who are none may not even see it.
func TestWhoSavedACardMayTakeItAway(t *testing.T) {
	t.Parallel()
	p := newPurser(t)
	p.agree("500")
	payer, admin := p.demote()
	mate := teamtest.Join(t, p.pool, p.scope.TeamID(), team.Member)
	if _, err := p.pay.FindCard(t.Context(), mate); !errors.Is(err, team.ErrForbidden) {
		t.Errorf("another member sees the card: %v", err)
	}
	if err := p.pay.RemoveCard(t.Context(), mate); !errors.Is(err, team.ErrForbidden) {
		t.Errorf("another member removes the card: %v", err)
	}
	if c, err := p.pay.FindCard(t.Context(), payer); err != nil || c.ID != "pm_1" {
		t.Errorf("who saved the card sees %+v, %v", c, err)
	}
	p.told()
	p.must(p.pay.RemoveCard(t.Context(), payer))
	p.told(payment.NewsCardRemoved)
	p.work()
	if !p.bank.detached["pm_1"] {
		t.Error("the bank keeps the card")
	}
	p.look()
	if a, err := p.pay.FindAutoTopUp(t.Context(), admin); err != nil || a.State != payment.AutoOff || a.OffReason != payment.OffCardRemoved || len(p.bank.asked) != 0 {
		t.Errorf("automatic top-ups are %+v, %v, after %d payments", a, err, len(p.bank.asked))
	}
	if err := p.pay.RemoveCard(t.Context(), payer); !errors.Is(err, team.ErrForbidden) {
		t.Errorf("taken away again: %v", err)
	}
	if err := p.pay.RemoveCard(t.Context(), admin); !errors.Is(err, payment.ErrNoCard) {
		t.Errorf("removed by an admin then: %v", err)
	}
}

// The admins are told when who saved the card leaves, if it still pays.
func TestAdminsAreToldThatThePayerLeft(t *testing.T) {
	t.Parallel()
	p := newPurser(t)
	mate := teamtest.Join(t, p.pool, p.scope.TeamID(), team.Member)
	leave := func(who team.Scope) {
		t.Helper()
		p.must(pg.InTx(t.Context(), p.pool, func(tx pgx.Tx) error {
			return p.pay.LeaveTx(t.Context(), tx, p.scope.TeamID(), who.UserID())
		}))
	}
	leave(p.scope)
	p.told() // the card pays nothing
	p.agree("500")
	leave(mate)
	p.told()
	leave(p.scope)
	p.told(payment.NewsPayerLeft)
	if n := p.news[0]; n.Card.Last4 != "4242" || n.Amount != p.auto().Amount || n.Cap != p.auto().MonthCap || n.TeamID != p.scope.TeamID() {
		t.Errorf("they were told %+v", n)
	}
	p.is(payment.AutoOn, 0, 0)
	p.look()
	if len(p.bank.asked) != 1 {
		t.Error("the card stopped to pay")
	}
}
