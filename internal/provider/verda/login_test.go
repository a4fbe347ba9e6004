package verda_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/cloudapi"
	"homeport.dev/homeport/internal/provider/providertest"
	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
	"homeport.dev/homeport/internal/provider/verda"
	"homeport.dev/homeport/internal/provider/verda/verdatest"
)

// TestTokensAreGotInTime: one is asked for once, renewed before it ends, and got
// anew where that is refused or it was withdrawn.
func TestTokensAreGotInTime(t *testing.T) {
	t.Parallel()
	a := verdatest.NewAccount(t)
	own, wait := later()
	c, _ := freshOf(t, a, verdatest.Dialect(a), own)
	look := func(want ...string) {
		t.Helper()
		if _, err := c.Find(t.Context(), "hp-test-1"); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, a.Granted()); diff != "" {
			t.Error(diff)
		}
	}
	const anew, again = "client_credentials", "refresh_token"
	look(anew)
	wait(58 * time.Minute)
	look(anew)
	wait(90 * time.Second) // before it ends
	look(anew, again)
	a.NoRenew, a.Life = true, 0
	wait(2 * time.Hour)
	look(anew, again, again, anew)
	wait(10 * time.Minute) // it was not said how long that one is good
	look(anew, again, again, anew, again, anew)

	a.Withdraw()
	if _, err := c.Find(t.Context(), "hp-test-1"); err == nil {
		t.Error("a withdrawn token is good")
	}
	look(anew, again, again, anew, again, anew, anew)
	l := providertest.Request(t, c, 0)
	a.Withdraw()
	if _, err := c.Launch(t.Context(), l); err != nil { // the look before it noticed
		t.Errorf("launch after the tokens were withdrawn: %v", err)
	}
}

// TestWithoutATokenNothingIsAskedFor, and the error tells no secret.
func TestWithoutATokenNothingIsAskedFor(t *testing.T) {
	t.Parallel()
	good, double, _ := fresh(t)
	l := providertest.Request(t, good, 0)
	before := len(double.Requests())
	c, err := verda.New(verda.Config{
		Key: "other:" + verdatest.ClientSecret + "x", BaseURL: double.URL, Limiter: cloudapi.NewLocal(double.Clock), Clock: double.Clock,
		Logger: cloudtest.Logger(t, verdatest.ClientSecret),
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Launch(t.Context(), l)
	if !provider.NoMachine(err) || strings.Contains(err.Error(), verdatest.ClientSecret) {
		t.Errorf("without a token: %v", err)
	}
	for _, r := range double.Requests()[before:] {
		if r.Path != base+"/oauth2/token" {
			t.Errorf("%s %s without a token", r.Method, r.Path)
		}
	}
}

func TestKeyHasTwoParts(t *testing.T) {
	t.Parallel()
	for key, ok := range map[string]bool{"id:secret": true, "id:se:cret": true, "": false, "id": false, ":secret": false, "id:": false} {
		if _, err := verda.New(verda.Config{Key: key}); (err == nil) != ok {
			t.Errorf("%q: %v", key, err)
		}
	}
}
