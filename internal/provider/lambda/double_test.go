package lambda_test

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/cloudapi"
	"homeport.dev/homeport/internal/provider/lambda"
	"homeport.dev/homeport/internal/provider/lambda/lambdatest"
	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
)

const (
	testKey   = lambdatest.Key
	base      = lambdatest.Base
	publicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBootstrapKeyOfNoAccount0000000000000000 homeport"
)

// fresh makes an empty double of Lambda and an adapter that calls it.
func fresh(t *testing.T) (*caller, *cloudtest.Cloud) {
	t.Helper()
	return freshOf(t, lambdatest.Dialect(t))
}

func freshOf(t *testing.T, d cloudtest.Dialect) (*caller, *cloudtest.Cloud) {
	t.Helper()
	c := &caller{turns: &turns{}}
	operation := d.Operation
	d.Operation = func(r *http.Request) string {
		if op := operation(r); op != cloudtest.Offers || c.launching.Load() == 0 {
			return op
		}
		return cloudtest.Check
	}
	double := cloudtest.New(t, d)
	var err error
	c.Cloud, err = lambda.New(lambda.Config{
		Key: testKey, BaseURL: double.URL + base, PublicKey: publicKey, Limiter: c.turns, Clock: double.Clock, Logger: cloudtest.Logger(t, testKey),
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, double
}

// caller is the adapter, and tells the double when it launches: a look at the
// price is the same request as one for the offers.
type caller struct {
	*lambda.Cloud
	launching atomic.Int32
	turns     *turns
}

// Launch implements provider.Adapter.
func (c *caller) Launch(ctx context.Context, l provider.Launch) (provider.Machine, error) {
	c.launching.Add(1)
	defer c.launching.Add(-1)
	return c.Cloud.Launch(ctx, l)
}

// turns is a Limiter that gives every turn at once and writes it down.
type turns struct {
	mu       sync.Mutex
	taken    []turn
	launches error // what a launch gets instead of its turn
}

type turn struct {
	Class    string
	Rate     cloudapi.Rate
	patience time.Duration
}

// Wait implements cloudapi.Limiter.
func (l *turns) Wait(ctx context.Context, b cloudapi.Bucket, r cloudapi.Rate) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	deadline, _ := ctx.Deadline()
	l.taken = append(l.taken, turn{b.Class, r, time.Until(deadline)})
	if b.Class == "launch" && l.launches != nil {
		return l.launches
	}
	return ctx.Err()
}

// Hold implements cloudapi.Limiter.
func (*turns) Hold(context.Context, cloudapi.Bucket, cloudapi.Rate, time.Duration) error { return nil }
