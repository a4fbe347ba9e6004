package app

import (
	"context"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/notice"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/payment/testpay"
	"homeport.dev/homeport/internal/team"
)

// works does the queued jobs of a kind, twice each: a job may run twice.
func works[J interface{ Kind() string }](q *quay, do func(J) error) {
	q.t.Helper()
	var kind J
	rows, err := q.pool.Query(q.t.Context(), `delete from river_job where kind = $1 returning args`, kind.Kind())
	q.must(err)
	jobs, err := pgx.CollectRows(rows, pgx.RowTo[json.RawMessage])
	q.must(err)
	for _, raw := range jobs {
		var j J
		q.must(json.Unmarshal(raw, &j))
		for range 2 {
			q.must(do(j))
		}
	}
}

// charge looks at what is due and has cards charged and letters sent.
func (q *quay) charge() {
	q.t.Helper()
	ctx := q.t.Context()
	q.must(q.meter.FollowSweep(ctx))
	q.must(q.payments.FollowAutoTopUps(ctx))
	works(q, func(j payment.ChargeJob) error { return q.payments.Charge(ctx, j) })
	works(q, func(j notice.LetterJob) error { return q.notices.SendLetter(ctx, j) })
}

// agreeWith saves a card as a payer does, and agrees on 25.00 below 10.00.
func (q *quay) agreeWith(scope team.Scope, outcome testpay.Outcome) {
	q.t.Helper()
	ctx := q.t.Context()
	address, err := q.payments.CheckoutCard(ctx, scope, idem.Request{})
	q.must(err)
	_, err = q.testpay.Act(ctx, path.Base(address), outcome)
	q.must(err)
	q.exec(`update card_setup set read_at = $1 where status = 'open'`, q.clock.Wall()) // its event got lost
	q.must(q.payments.ReadOpen(ctx))
	_, err = q.payments.SetAutoTopUp(ctx, scope, payment.AutoChange{Enabled: true, Threshold: "10", Amount: "25", MonthCap: "50"})
	q.must(err)
}

// kinds are the notices that a person sees.
func (q *quay) kinds(scope team.Scope) []notice.Kind {
	q.t.Helper()
	all, err := q.notices.List(q.t.Context(), scope, q.clock.Now())
	q.must(err)
	kinds := []notice.Kind{}
	for _, n := range all {
		kinds = append(kinds, n.Kind)
	}
	return kinds
}

// mails are what was sent to an address, the oldest first.
func (q *quay) mails(to string) (subjects []string, last string) {
	q.t.Helper()
	letters, err := q.mailbox.List(q.t.Context())
	q.must(err)
	slices.Reverse(letters)
	for _, l := range letters {
		if l.To == to {
			subjects, last = append(subjects, l.Subject), l.Text
		}
	}
	return subjects, last
}

// A card that is declined is told to the admins alone, once each time, until
// automatic top-ups are off; the page shows what is true now.
func TestDeclinedTopUpsAreToldToTheAdmins(t *testing.T) {
	t.Parallel()
	q := newQuay(t)
	ada, bob := q.sailor("ada"), q.sailor("bob")
	docks := q.crew(ada, bob)
	q.agreeWith(docks, testpay.SaveDeclined)
	for i, want := range []struct {
		kind   notice.Kind
		pause  time.Duration
		letter string
	}{
		{notice.TopUpDeclined, time.Hour, "Visa ending in 0341 was declined for the automatic top-up of $25.00 of the team Docks. Nothing was charged."},
		{notice.TopUpDeclined, 6 * time.Hour, "It is tried again on "},
		{notice.TopUpOff, 72 * time.Hour, "it will not be tried again: automatic top-up is off."},
	} {
		q.charge()
		q.charge()
		if got := q.kinds(docks); !slices.Equal(got, []notice.Kind{want.kind}) {
			t.Errorf("after try %d the page shows %v", i, got)
		}
		subjects, text := q.mails(ada.Email)
		text = strings.Join(strings.Fields(text), " ")
		if len(subjects) != i+1 || !strings.Contains(text, want.letter) || strings.Count(text, "http") != 1 {
			t.Errorf("after try %d: %q, the last says %s", i, subjects, text)
		}
		q.clock.SetOffset(q.clock.Offset() + want.pause)
	}
	q.charge()
	if subjects, _ := q.mails(ada.Email); len(subjects) != 3 {
		t.Errorf("the admin got %q", subjects)
	}
	if subjects, _ := q.mails(bob.Email); len(subjects) != 0 {
		t.Errorf("a member got %q", subjects)
	}
	q.agreeWith(docks, testpay.Pay)
	q.charge()
	if got := q.kinds(docks); len(got) != 0 {
		t.Errorf("after a payment the page shows %v", got)
	}
	b, err := q.wallet.Balance(t.Context(), docks, q.clock.Now())
	if err != nil || b.Balance.Decimal() != "25" {
		t.Errorf("the balance is %s, %v", b.Balance, err)
	}
}

// Each of the other kinds has a letter with its figures and one link.
func TestLettersOfTopUps(t *testing.T) {
	t.Parallel()
	q := newQuay(t)
	ada := q.sailor("ada")
	docks := q.crew(ada)
	next := time.Date(2027, 4, 1, 0, 0, 0, 0, time.UTC)
	for kind, want := range map[payment.NewsKind]string{
		payment.NewsAuthentication: "The bank of Visa ending in 3184 wants its owner to confirm the automatic top-up of $25.00 of the team Docks.",
		payment.NewsCapped:         "would exceed the cap of $500.00 for this month: $490.00 of it are used. The next one is possible from 1 April 2027 at 00:00 UTC on.",
		payment.NewsCardRemoved:    "Visa ending in 3184 of the team Docks was removed at the payment provider or by who saved it, so automatic top-up is off.",
		payment.NewsPayerLeft:      "Visa ending in 3184, which pays the automatic top-ups of the team Docks, was saved by somebody who is no longer a member. It goes on to pay $25.00 when the balance is low, up to $500.00 a month.",
	} {
		q.do(func(ctx context.Context, tx pgx.Tx) error {
			return q.payments.OnAutoTopUp(ctx, tx, payment.News{
				TeamID: docks.TeamID(), Kind: kind, Key: id.New().String(), At: q.clock.Now(), Amount: 25_000_000, Cap: 500_000_000,
				Paid: 490_000_000, Card: payment.Card{Brand: "visa", Last4: "3184"}, NextAt: &next,
			})
		})
		q.charge()
		if _, text := q.mails(ada.Email); !strings.Contains(strings.Join(strings.Fields(text), " "), want) || strings.Count(text, "http") != 1 {
			t.Errorf("%s: the letter says %s", kind, text)
		}
	}
}

// Who saved the card hears that it stays when they are made no admin, and how to
// take it away; nobody else does, and the page shows nothing.
func TestADemotedPayerHearsThatTheCardStays(t *testing.T) {
	t.Parallel()
	q := newQuay(t)
	ctx := t.Context()
	ada, bob, eve := q.sailor("ada"), q.sailor("bob"), q.sailor("eve")
	docks := q.crew(ada, bob, eve)
	for _, who := range []team.Person{bob, eve} {
		_, err := q.teams.SetRole(ctx, docks, who.ID, team.Admin)
		q.must(err)
	}
	q.agreeWith(q.scope(bob, docks.TeamID(), team.Manage), testpay.Pay)
	for _, who := range []team.Person{eve, bob} {
		_, err := q.teams.SetRole(ctx, docks, who.ID, team.Viewer)
		q.must(err)
	}
	works(q, func(j notice.LetterJob) error { return q.notices.SendLetter(ctx, j) })
	subjects, text := q.mails(bob.Email)
	text = strings.Join(strings.Fields(text), " ")
	if !slices.Equal(subjects, []string{"Your card stays with Docks"}) || strings.Count(text, "http") != 1 ||
		!strings.Contains(text, "It goes on to pay automatic top-ups: $25.00 when the balance is low, up to $50.00 a month.") {
		t.Errorf("who saved the card got %q, the last says %s", subjects, text)
	}
	for _, other := range []team.Person{ada, eve} {
		if subjects, _ := q.mails(other.Email); len(subjects) != 0 {
			t.Errorf("%s got %q", other.Email, subjects)
		}
	}
	if got := q.kinds(docks); len(got) != 0 {
		t.Errorf("the page shows %v", got)
	}
	q.must(q.payments.RemoveCard(ctx, q.scope(bob, docks.TeamID(), team.Read)))
	works(q, func(j notice.LetterJob) error { return q.notices.SendLetter(ctx, j) })
	if subjects, _ := q.mails(ada.Email); len(subjects) != 1 || !strings.HasSuffix(subjects[0], "is off: the card is gone") {
		t.Errorf("the admin got %q once it was taken away", subjects)
	}
}

// A card stays the team's when who saved it is removed: the admins are told.
func TestAdminsHearThatThePayerLeft(t *testing.T) {
	t.Parallel()
	q := newQuay(t)
	ctx := t.Context()
	ada, bob := q.sailor("ada"), q.sailor("bob")
	docks := q.crew(ada, bob)
	_, err := q.teams.SetRole(ctx, docks, bob.ID, team.Admin)
	q.must(err)
	q.agreeWith(q.scope(bob, docks.TeamID(), team.Manage), testpay.Pay)
	q.must(q.teams.RemoveMember(ctx, docks, bob.ID))
	works(q, func(j notice.LetterJob) error { return q.notices.SendLetter(ctx, j) })
	if subjects, text := q.mails(ada.Email); !slices.Equal(subjects, []string{"Who saved the card of Docks has left"}) || strings.Contains(text, bob.Email) {
		t.Errorf("the admin got %q, the last says %s", subjects, text)
	}
	if subjects, _ := q.mails(bob.Email); len(subjects) != 0 {
		t.Errorf("who left got %q", subjects)
	}
	if got := q.kinds(docks); len(got) != 0 {
		t.Errorf("the page shows %v", got)
	}
}
