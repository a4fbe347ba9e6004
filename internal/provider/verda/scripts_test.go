package verda_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/cloudapi"
	"homeport.dev/homeport/internal/provider/providertest"
	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
	"homeport.dev/homeport/internal/provider/verda"
	"homeport.dev/homeport/internal/provider/verda/verdatest"
)

// later is a clock that is moved by hand.
func later() (*clock.Clock, func(d time.Duration)) {
	var ahead atomic.Int64
	return clock.From(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }), func(d time.Duration) { ahead.Add(int64(d)) }
}

// TestScriptsOfBrokenLaunchesAreSwept: after a lost answer nobody else knows of
// the script. Those of machines that are there, of other installations and of
// the account's owner stay.
func TestScriptsOfBrokenLaunchesAreSwept(t *testing.T) {
	t.Parallel()
	a := verdatest.NewAccount(t)
	own, wait := later()
	c, double := freshOf(t, a, verdatest.Dialect(a), own)
	old := strconv.FormatInt(time.Now().Add(-240*time.Hour).Unix(), 10)
	for _, name := range []string{"setup.sh", "hp-test-notes", "hp-test-" + old + ".sh", "hp-othr-00000009-1." + old} {
		a.KeepScript(name)
	}
	kept := a.ScriptNames()

	if _, err := c.Launch(t.Context(), providertest.Request(t, c, 0)); err != nil {
		t.Fatal(err)
	}
	living := a.ScriptNames()
	double.Inject(t, "launch", "error_before", 1)
	broken := providertest.Request(t, c, 0)
	broken.Name = "hp-test-00000002-1"
	if _, err := c.Launch(t.Context(), broken); err == nil || provider.NoMachine(err) {
		t.Fatalf("the answer was not lost: %v", err)
	}
	look := func(prefix string, want int) {
		t.Helper()
		if _, err := c.Find(t.Context(), prefix); err != nil {
			t.Fatal(err)
		}
		if left := a.ScriptNames(); len(left) != want {
			t.Errorf("after a look at %s there are %v", prefix, left)
		}
	}
	look("hp-test-", len(living)+1) // a machine may still appear
	wait(2 * time.Hour)
	look("hp-test-00000002-1", len(living)+1) // who looks for one machine does not sweep
	look("hp-test-", len(living))
	if diff := cmp.Diff(living, a.ScriptNames()); diff != "" {
		t.Error(diff)
	}
	double.Inject(t, "find", "empty", 1)
	look("hp-test-", len(kept))
	if diff := cmp.Diff(kept, a.ScriptNames()); diff != "" {
		t.Error(diff)
	}
}

// patience notes how long each call could have waited for its turn.
type patience struct {
	cloudapi.Limiter
	mu   sync.Mutex
	list []time.Duration
}

// Wait implements cloudapi.Limiter.
func (p *patience) Wait(ctx context.Context, b cloudapi.Bucket, r cloudapi.Rate) error {
	deadline, _ := ctx.Deadline()
	p.mu.Lock()
	p.list = append(p.list, time.Until(deadline))
	p.mu.Unlock()
	return p.Limiter.Wait(ctx, b, r)
}

// TestSweepTakesLittleOfTheTime: whoever looks through an installation ends
// machines afterwards.
func TestSweepTakesLittleOfTheTime(t *testing.T) {
	t.Parallel()
	double := cloudtest.New(t, verdatest.Dialect(verdatest.NewAccount(t)))
	p := &patience{Limiter: cloudapi.NewLocal(double.Clock)}
	c, err := verda.New(verda.Config{Key: verdatest.ClientID + ":" + verdatest.ClientSecret, BaseURL: double.URL, Limiter: p, Clock: double.Clock, Logger: cloudtest.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := c.Find(ctx, "hp-test-"); err != nil {
		t.Fatal(err)
	}
	if n := len(p.list); n < 2 || p.list[0] < 20*time.Second || p.list[n-1] > 10*time.Second {
		t.Errorf("of a minute the calls could take %v", p.list)
	}
}
