package app

import (
	"path"
	"strings"
	"testing"
	"time"

	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/notice"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/payment/testpay"
	"homeport.dev/homeport/internal/team"
)

// subscribes pays for a Pro team of a person's, whose events got lost.
func (q *quay) subscribes(p team.Person) team.Scope {
	q.t.Helper()
	ctx := q.t.Context()
	address, err := q.payments.CheckoutTeam(ctx, p, payment.TeamRequest{Name: "Docks", Members: "2"}, idem.Request{})
	q.must(err)
	_, err = q.testpay.Act(ctx, path.Base(address), testpay.Pay)
	q.must(err)
	for range 2 { // the checkout, then its subscription
		q.exec(`update team_checkout set read_at = $1 where status = 'open'`, q.clock.Wall())
		q.must(q.payments.ReadOpen(ctx))
	}
	info, err := q.teams.UserInfo(ctx, p)
	q.must(err)
	for _, t := range info.Teams {
		if t.Name == "Docks" {
			return q.scope(p, t.ID, team.Manage)
		}
	}
	q.t.Fatal("the paid team is not there")
	return team.Scope{}
}

// Who ended Pro is told 72 hours before list prices begin, once, with what the
// pods cost now and then, and one link.
func TestTheEndOfAPlanIsToldWithItsPrices(t *testing.T) {
	t.Parallel()
	q := newQuay(t)
	ctx := t.Context()
	ada := q.sailor("ada")
	docks := q.subscribes(ada)
	q.pay(ada, docks.TeamID(), 5000*money.Dollar)
	made, err := q.pods.Create(ctx, docks, q.want(docks, publicKey))
	q.must(err)
	q.must(q.payments.EndSubscription(ctx, docks))
	plan, err := q.payments.FindPlan(ctx, docks)
	q.must(err)
	follow := func() (subjects []string, last string) {
		t.Helper()
		q.must(q.payments.FollowEndings(ctx))
		works(q, func(j notice.LetterJob) error { return q.notices.SendLetter(ctx, j) })
		return q.mails(ada.Email)
	}
	q.clock.SetOffset(plan.EndAt.Sub(q.clock.Wall()) - 73*time.Hour)
	if got, _ := follow(); len(got) != 0 {
		t.Fatalf("told too early: %q", got)
	}
	q.clock.SetOffset(plan.EndAt.Sub(q.clock.Wall()) - 71*time.Hour)
	follow()
	got, text := follow()
	text = strings.Join(strings.Fields(text), " ")
	if len(got) != 1 || got[0] != "The Pro plan of Docks ends on "+plan.EndAt.UTC().Format("2 January 2006") {
		t.Errorf("the letters are %q", got)
	}
	dollars := func(rate money.Rate) string { // to the tenth of a cent
		whole := rate.Decimal()
		if !strings.Contains(whole, ".") {
			whole += "."
		}
		whole += "000"
		return "$" + whole[:strings.Index(whole, ".")+4]
	}
	for _, want := range []string{
		"The subscription of the team Docks was ended. It is paid until " + plan.EndAt.UTC().Format("2 January 2006 at 15:04") + " UTC",
		"Its pod costs " + dollars(made.Rate) + " per hour now. From then on it is the list price, " + dollars(made.ListRate) + " per hour: Pro's discount of 16% ends.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the letter lacks %q: %s", want, text)
		}
	}
	if made.Rate >= made.ListRate || strings.Count(text, "http") != 1 {
		t.Errorf("%s of %s; the letter says %s", made.Rate.Decimal(), made.ListRate.Decimal(), text)
	}
}
