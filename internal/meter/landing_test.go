package meter_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/wallet"
)

// wantLanding asserts what the pods of a team are told of their end; zero: nothing.
func (y *yard) wantLanding(scope team.Scope, at time.Time, limit bool) {
	y.t.Helper()
	got, err := y.w.LandingOf(y.t.Context(), y.pool, scope.TeamID(), y.clock.Now())
	if err != nil {
		y.t.Fatal(err)
	}
	want := &wallet.Landing{At: at, Limit: limit}
	if at.IsZero() {
		want = nil
	}
	if diff := cmp.Diff(want, got); diff != "" {
		y.t.Errorf("at %s the pods' end (-want +got):\n%s", y.clock.Now().Format(time.TimeOnly), diff)
	}
}

func TestPodsKnowOfAnEmptyBalance15MinutesBefore(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	scope, pod := y.run(2*money.Dollar, 1_000_000)
	y.wait(104 * time.Minute)
	y.wantLanding(scope, time.Time{}, false)
	told := y.fleet.told
	y.wait(time.Minute)
	y.wantLanding(scope, noon.Add(2*time.Hour), false)
	if y.fleet.told != told+1 {
		t.Errorf("the pods were told %d times at 15 minutes, want once", y.fleet.told-told)
	}
	y.pay(scope, money.Dollar)
	y.wantLanding(scope, time.Time{}, false)
	y.wait(70 * time.Minute)
	y.wantLanding(scope, noon.Add(3*time.Hour), false)
	y.stop(pod) // nothing is left that could end
	y.wantLanding(scope, time.Time{}, false)
}

func TestPodsKnowOfAUsedUpLimitForAnHour(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	scope, _ := y.run(100*money.Dollar, 1_000_000)
	y.limit(scope, money.Dollar)
	y.wait(59 * time.Minute)
	y.wantLanding(scope, time.Time{}, false)
	y.wait(2 * time.Minute)
	y.wantLanding(scope, noon.Add(2*time.Hour), true)
	y.limit(scope, 20*money.Dollar)
	y.wantLanding(scope, time.Time{}, false)
}

func TestTheFirstOfTwoEndsIsTold(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	scope, _ := y.run(2*money.Dollar, 1_000_000)
	y.limit(scope, money.Dollar+10*money.Cent)
	y.wait(110 * time.Minute) // the limit lands after 126 minutes, the balance after 120
	y.wantLanding(scope, noon.Add(2*time.Hour), false)
}

func TestALimitThatANewMonthLiftsEndsNoPod(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.clock.Advance(time.Date(2027, 3, 31, 23, 0, 0, 0, time.UTC).Sub(noon))
	scope, _ := y.run(100*money.Dollar, 1_000_000)
	y.limit(scope, 10*money.Cent)
	y.wait(20 * time.Minute)
	y.wantLanding(scope, time.Time{}, false)
}
