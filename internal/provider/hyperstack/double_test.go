package hyperstack_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"

	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/cloudapi"
	"homeport.dev/homeport/internal/provider/hyperstack"
	"homeport.dev/homeport/internal/provider/hyperstack/hyperstacktest"
	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
)

const (
	testKey   = hyperstacktest.Key
	base      = hyperstacktest.Base
	publicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBootstrapKeyOfNoAccount0000000000000000 homeport"
	token     = "token-of-the-instance"
)

// fresh makes an empty double of Hyperstack and an adapter that calls it.
func fresh(t *testing.T) (*caller, *cloudtest.Cloud) {
	t.Helper()
	c, double := freshOf(t, hyperstacktest.Dialect(hyperstacktest.NewAccount(t)))
	return c, double
}

func freshOf(t *testing.T, d cloudtest.Dialect) (*caller, *cloudtest.Cloud) {
	t.Helper()
	c := &caller{}
	operation := d.Operation
	d.Operation = func(r *http.Request) string {
		if op := operation(r); op != cloudtest.Check || c.launching.Load() > 0 {
			return op
		}
		return "prices"
	}
	double := cloudtest.New(t, d)
	var err error
	c.Cloud, err = hyperstack.New(hyperstack.Config{
		Key: testKey, BaseURL: double.URL, PublicKey: publicKey, Limiter: cloudapi.NewLocal(double.Clock), Clock: double.Clock,
		Logger: cloudtest.Logger(t, testKey, token),
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, double
}

// caller is the adapter, and tells the double when it launches: the prices are
// read by the same request as for the offers.
type caller struct {
	*hyperstack.Cloud
	launching atomic.Int32
}

// Launch implements provider.Adapter.
func (c *caller) Launch(ctx context.Context, l provider.Launch) (provider.Machine, error) {
	c.launching.Add(1)
	defer c.launching.Add(-1)
	return c.Cloud.Launch(ctx, l)
}
