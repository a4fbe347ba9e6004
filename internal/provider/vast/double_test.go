package vast_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"homeport.dev/homeport/internal/provider/cloudapi"
	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
	"homeport.dev/homeport/internal/provider/vast"
	"homeport.dev/homeport/internal/provider/vast/vasttest"
)

const (
	testKey = vasttest.Key
	base    = vasttest.Base
)

// fresh makes an empty double of Vast and an adapter that calls it.
func fresh(t *testing.T) (*vast.Cloud, *cloudtest.Cloud) {
	t.Helper()
	c, double, _ := freshOf(t, vasttest.Dialect(t, vasttest.Asks(t)))
	return c, double
}

func freshOf(t *testing.T, d cloudtest.Dialect) (*vast.Cloud, *cloudtest.Cloud, *turns) {
	t.Helper()
	double, limits := cloudtest.New(t, d), &turns{}
	c, err := vast.New(vast.Config{
		Key: testKey, BaseURL: double.URL + base, Limiter: limits, Clock: double.Clock, Logger: cloudtest.Logger(t, testKey, "token-of-the-instance"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, double, limits
}

// turns is a Limiter that gives every turn at once and writes it down.
type turns struct {
	mu    sync.Mutex
	taken []turn
	held  []turn
}

type turn struct {
	Class string
	Rate  cloudapi.Rate
}

// Wait implements cloudapi.Limiter.
func (l *turns) Wait(ctx context.Context, b cloudapi.Bucket, r cloudapi.Rate) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken = append(l.taken, turn{b.Class, r})
	return ctx.Err()
}

// Hold implements cloudapi.Limiter.
func (l *turns) Hold(_ context.Context, b cloudapi.Bucket, _ cloudapi.Rate, d time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = append(l.held, turn{b.Class, cloudapi.Rate{Every: d}})
	return nil
}
