package verda_test

import (
	"testing"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/provider/cloudapi"
	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
	"homeport.dev/homeport/internal/provider/verda"
	"homeport.dev/homeport/internal/provider/verda/verdatest"
)

const base = verdatest.Base

// fresh makes an empty double of Verda and an adapter that calls it.
func fresh(t *testing.T) (*verda.Cloud, *cloudtest.Cloud, *verdatest.Account) {
	t.Helper()
	a := verdatest.NewAccount(t)
	c, double := freshOf(t, a, verdatest.Dialect(a), nil)
	return c, double, a
}

// freshOf makes an adapter with a clock of its own, or with nil the double's.
func freshOf(t *testing.T, a *verdatest.Account, d cloudtest.Dialect, own *clock.Clock) (*verda.Cloud, *cloudtest.Cloud) {
	t.Helper()
	double := cloudtest.New(t, d)
	if own == nil {
		own = double.Clock
	}
	c, err := verda.New(verda.Config{
		Key: verdatest.ClientID + ":" + verdatest.ClientSecret, BaseURL: double.URL, Limiter: cloudapi.NewLocal(double.Clock), Clock: own,
		Logger: cloudtest.Logger(t, verdatest.ClientSecret, "access-", "refresh-", "token-of-the-instance"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, double
}
