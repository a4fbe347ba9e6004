package meter_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/team/teamtest"
	"homeport.dev/homeport/internal/volume"
)

const day = 24 * time.Hour

func (y *yard) wantLetters(want ...string) {
	y.t.Helper()
	if want == nil {
		want = []string{}
	}
	if diff := cmp.Diff(want, y.letters()); diff != "" {
		y.t.Errorf("letters (-want +got):\n%s", diff)
	}
}

func TestRunwaysAreToldOnceEach(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	scope, _ := y.run(30*money.Dollar, 1_000_000)
	y.wait(5 * time.Hour)
	y.wantLetters()
	y.wait(time.Hour)
	y.wantLetters("Less than 24 hours of balance left for Test team")
	if got := y.kinds(scope); got != "runway_24h" {
		t.Errorf("told %q", got)
	}
	y.wait(22 * time.Hour)
	y.wantLetters()
	y.wait(time.Hour + 50*time.Minute)
	y.wantLetters("Less than 1 hour of balance left for Test team", "Less than 15 minutes of balance left for Test team")
	if got := y.kinds(scope); got != "runway_15m" {
		t.Errorf("told %q", got)
	}
	y.pay(scope, money.Dollar) // 70 minutes: twice 15 minutes, not twice an hour
	if got := y.kinds(scope); got != "runway_1h" {
		t.Errorf("told %q", got)
	}
	y.wait(60 * time.Minute)
	y.wantLetters("Less than 15 minutes of balance left for Test team")
	y.pay(scope, 100*money.Dollar)
	if got := y.kinds(scope); got != "" {
		t.Errorf("told %q with 100 hours left", got)
	}
	y.wait(200 * time.Hour)
	y.wantLetters("Less than 24 hours of balance left for Test team", "Less than 1 hour of balance left for Test team",
		"Less than 15 minutes of balance left for Test team", "The balance of Test team is used up")
}

func TestAShortRunwayFromTheStartIsOneLetter(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	scope, _ := y.run(money.Dollar/2, 1_000_000)
	y.wait(time.Second)
	y.wantLetters("Less than 1 hour of balance left for Test team")
	y.wait(time.Minute)
	y.wantLetters()
	if text := y.post.letters; len(text) != 0 {
		t.Fatal(text)
	}
	if got := y.kinds(scope); got != "runway_1h" {
		t.Errorf("told %q", got)
	}
}

// A letter that waited, in a queue or for a mail server, goes to nobody who is
// no admin of the team any more.
func TestALetterThatWaitedGoesToAdminsAlone(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	scope, _ := y.run(money.Dollar/2, 1_000_000)
	demoted := teamtest.Join(t, y.pool, scope.TeamID(), team.Admin)
	left := teamtest.Join(t, y.pool, scope.TeamID(), team.Admin)
	y.wait(time.Second)
	teams := team.New(team.Deps{Pool: y.pool, Clock: y.clock.Clock, Jobs: y.jobs})
	_, err := teams.SetRole(t.Context(), scope, demoted.UserID(), team.Viewer)
	y.must(err)
	y.must(teams.RemoveMember(t.Context(), scope, left.UserID()))
	y.wantLetters("Less than 1 hour of balance left for Test team")
	if to := y.post.letters[0].To; to != id.First(scope.UserID())+"@example.org" {
		t.Errorf("the letter went to %s", to)
	}
}

func TestDismissedNoticesStayAwayFromOnePerson(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	scope, _ := y.run(money.Dollar/2, 1_000_000)
	y.wait(time.Second)
	list, err := y.notices.List(t.Context(), scope, y.clock.Now())
	if err != nil || len(list) != 1 {
		t.Fatalf("%v (%v)", list, err)
	}
	other := y.team(team.Pro)
	if err := y.notices.Dismiss(t.Context(), other, list[0].ID); err == nil {
		t.Error("another team dismissed it")
	}
	y.must(y.notices.Dismiss(t.Context(), scope, list[0].ID))
	y.must(y.notices.Dismiss(t.Context(), scope, list[0].ID))
	if got := y.kinds(scope); got != "" {
		t.Errorf("told %q after it was dismissed", got)
	}
}

// An older notice of the same kind is behind the one that is dismissed: what it
// says is long over.
func TestDismissingANoticeUncoversNoOlderOne(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	scope, _ := y.run(money.Dollar, 1_000_000)
	y.wait(time.Second)
	y.pay(scope, 100*money.Dollar)
	y.wait(100*time.Hour + time.Second)
	for _, want := range []string{"runway_1h", ""} {
		if got := y.kinds(scope); got != want {
			t.Fatalf("told %q, want %q", got, want)
		}
		list, err := y.notices.List(t.Context(), scope, y.clock.Now())
		y.must(err)
		for _, n := range list {
			y.must(y.notices.Dismiss(t.Context(), scope, n.ID))
		}
	}
}

func TestUnpaidStorageGoesDownTheLadder(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	scope := y.team(team.Hobby)
	y.pay(scope, 10*money.Dollar)
	vol := y.volume(scope, 500) // 0.10 USD per hour: 100 hours
	zero := noon.Add(100 * time.Hour)
	y.wait(100*time.Hour - time.Second)
	y.letters()
	y.wait(2 * time.Second)
	name := y.post.teamName(t, y)
	y.wantLetters("The balance of " + name + " is used up")
	if got := y.kinds(scope); got != "balance_empty" {
		t.Errorf("told %q", got)
	}
	y.wait(7*day - 2*time.Second)
	y.wantLetters()
	y.wait(3 * time.Second)
	y.wantLetters("The storage of " + name + " is frozen")
	if b := y.balance(scope); b.Balance != -16_800_000 || b.SpendingPerHour != 0 {
		t.Errorf("balance %s, spending %s on day 7, want -16.80 and nothing", b.Balance.Decimal(), b.SpendingPerHour.Decimal())
	}
	if !strings.Contains(y.post.letters[0].Text, "$16.80") {
		t.Errorf("the letter does not say what is owed:\n%s", y.post.letters[0].Text)
	}
	y.attachIs(scope, vol, volume.ErrFrozen)
	y.wait(16 * day)
	y.wantLetters("The volumes of " + name + " move to the trash in 7 days")
	y.wait(6 * day)
	y.wantLetters("The volumes of " + name + " move to the trash tomorrow")
	y.wait(day)
	y.wantLetters()
	y.attachIs(scope, vol, volume.ErrNotFound)
	if got := y.kinds(scope); got != "storage_trashed" {
		t.Errorf("told %q", got)
	}
	y.wait(7*day - 3*time.Second)
	if len(y.purged) != 0 {
		t.Fatalf("purged %v before day 37", y.purged)
	}
	y.wait(2 * time.Second)
	if at := y.purged[vol]; at.Before(zero.Add(37 * day)) {
		t.Errorf("purged at %v, want after %v", at, zero.Add(37*day))
	}
	if b := y.balance(scope); b.Balance != -16_800_000 {
		t.Errorf("balance %s in the end", b.Balance.Decimal())
	}
}

func TestFortyFiveDaysAtOnceAreTheSameLadder(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	scope := y.team(team.Hobby)
	y.pay(scope, 10*money.Dollar)
	vol := y.volume(scope, 500)
	y.clock.Advance(45 * day)
	y.must(y.m.SettleSweep(t.Context())) // another node is first
	if b := y.balance(scope); b.Balance != -16_800_000 {
		t.Errorf("balance %s before any sweep, want seven days of storage", b.Balance.Decimal())
	}
	y.wait(0)
	name := y.post.teamName(t, y)
	y.wantLetters("Less than 24 hours of balance left for "+name, "Less than 1 hour of balance left for "+name, "Less than 15 minutes of balance left for "+name,
		"The balance of "+name+" is used up", "The storage of "+name+" is frozen", "The volumes of "+name+" move to the trash in 7 days",
		"The volumes of "+name+" move to the trash tomorrow")
	if b := y.balance(scope); b.Balance != -16_800_000 {
		t.Errorf("balance %s, want seven days of storage", b.Balance.Decimal())
	}
	if y.purged[vol].IsZero() {
		t.Error("the volume was not purged")
	}
}

func TestAPaymentEndsTheLadderOnEveryStep(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{3 * day, 8 * day, 25 * day, 31 * day, 36 * day} {
		t.Run(after.String(), func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			scope := y.team(team.Hobby)
			y.pay(scope, 10*money.Dollar)
			vol := y.volume(scope, 500)
			y.wait(100*time.Hour + after)
			owed := -y.balance(scope).Balance
			y.pay(scope, owed-1)
			y.wait(time.Second)
			if after > 7*day {
				y.attachIs(scope, vol, volume.ErrFrozen, volume.ErrNotFound)
			}
			y.pay(scope, 5*money.Dollar)
			y.wait(time.Second)
			if got := y.kinds(scope); got != "" && !strings.HasPrefix(got, "runway") {
				t.Errorf("told %q after the payment", got)
			}
			if b := y.balance(scope); b.SpendingPerHour != 100_000 || b.Balance <= 0 {
				t.Errorf("balance %s, spending %s after the payment", b.Balance.Decimal(), b.SpendingPerHour.Decimal())
			}
			y.attachIs(scope, vol, nil)
			y.wait(5 * day)
			if len(y.purged) > 0 {
				t.Error("it was purged although it was paid")
			}
		})
	}
}

// No node looked at the wallet from day 7 until the payment came: storage that
// the wallet stopped metering is metered again.
func TestAPaymentBeforeTheFreezeWasTakenMetersStorageAgain(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{7*day - time.Microsecond, 7 * day, 8 * day, 33 * day} {
		t.Run(after.String(), func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			scope := y.team(team.Hobby)
			y.pay(scope, 10*money.Dollar)
			vol := y.volume(scope, 500)
			y.wait(100 * time.Hour)
			y.clock.Advance(after)
			y.pay(scope, 21_800_000)
			y.wait(time.Second)
			if b := y.balance(scope); b.SpendingPerHour != 100_000 {
				t.Errorf("spending %s after the payment, want 0.10", b.SpendingPerHour.Decimal())
			}
			before := y.balance(scope).Balance
			y.wait(10 * time.Hour)
			if got := before - y.balance(scope).Balance; got != money.Dollar {
				t.Errorf("ten hours of storage cost %s, want 1.00", got.Decimal())
			}
			y.attachIs(scope, vol, nil)
		})
	}
}

func TestTheTrashWaitsForALastSync(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	scope := y.team(team.Hobby)
	y.pay(scope, 10*money.Dollar)
	vol := y.volume(scope, 500)
	pod := id.New()
	y.tx(func(ctx context.Context, tx pgx.Tx) error {
		_, err := y.v.AttachTx(ctx, tx, scope, vol, pod, y.clock.Now())
		return err
	})
	y.wait(100*time.Hour + 31*day)
	y.tx(func(ctx context.Context, tx pgx.Tx) error { return y.v.ReleaseTx(ctx, tx, vol, pod, y.clock.Now()) })
	y.wait(0)
	y.attachIs(scope, vol, volume.ErrNotFound)
	if b := y.balance(scope); b.Balance != -16_800_000 {
		t.Errorf("balance %s, want seven days of storage", b.Balance.Decimal())
	}
}

// attachIs tries to use a volume, and undoes it.
func (y *yard) attachIs(scope team.Scope, vol uuid.UUID, want ...error) {
	y.t.Helper()
	var got error
	y.tx(func(ctx context.Context, tx pgx.Tx) error {
		pod := id.New()
		_, got = y.v.AttachTx(ctx, tx, scope, vol, pod, y.clock.Now())
		if got == nil {
			return y.v.ReleaseTx(ctx, tx, vol, pod, y.clock.Now())
		}
		return nil
	})
	if !slices.ContainsFunc(want, func(w error) bool { return errors.Is(got, w) }) {
		y.t.Errorf("attaching gives %v, want one of %v", got, want)
	}
}

// teamName is that of the only team.
func (p *postbox) teamName(t *testing.T, y *yard) string {
	t.Helper()
	var name string
	if err := y.pool.QueryRow(t.Context(), `select name from team limit 1`).Scan(&name); err != nil {
		t.Fatal(err)
	}
	return name
}
