package runpod_test

import (
	"testing"

	"homeport.dev/homeport/internal/provider/cloudapi"
	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
	"homeport.dev/homeport/internal/provider/runpod"
	"homeport.dev/homeport/internal/provider/runpod/runpodtest"
)

const (
	testKey = runpodtest.Key
	base    = runpodtest.Base
)

// fresh makes an empty double of Runpod and an adapter that calls it.
func fresh(t *testing.T) (*runpod.Cloud, *cloudtest.Cloud) {
	t.Helper()
	return freshOf(t, runpodtest.Dialect(t, runpodtest.GPUs(t)))
}

func freshOf(t *testing.T, d cloudtest.Dialect) (*runpod.Cloud, *cloudtest.Cloud) {
	t.Helper()
	double := cloudtest.New(t, d)
	c, err := runpod.New(runpod.Config{
		Key: testKey, BaseURL: double.URL + base, Limiter: cloudapi.NewLocal(double.Clock), Clock: double.Clock,
		Logger: cloudtest.Logger(t, testKey),
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, double
}
