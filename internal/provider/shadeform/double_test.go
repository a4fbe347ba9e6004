package shadeform_test

import (
	"testing"

	"homeport.dev/homeport/internal/provider/cloudapi"
	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
	"homeport.dev/homeport/internal/provider/shadeform"
	"homeport.dev/homeport/internal/provider/shadeform/shadeformtest"
)

const testKey = shadeformtest.Key

// fresh makes an empty double of Shadeform and an adapter that calls it.
func fresh(t *testing.T) (*shadeform.Cloud, *cloudtest.Cloud) {
	t.Helper()
	return freshOf(t, shadeformtest.Dialect(t))
}

func freshOf(t *testing.T, d cloudtest.Dialect) (*shadeform.Cloud, *cloudtest.Cloud) {
	t.Helper()
	double := cloudtest.New(t, d)
	c, err := shadeform.New(shadeform.Config{
		Key: testKey, BaseURL: double.URL, Limiter: cloudapi.NewLocal(double.Clock), Clock: double.Clock, Logger: cloudtest.Logger(t, testKey),
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, double
}
