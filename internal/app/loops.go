package app

import (
	"context"
	"errors"
	"sync"
	"time"
)

// A loop is one piece of background work that finds by itself what is due.
type loop struct {
	name  string
	every time.Duration
	run   func(ctx context.Context) error
}

// loops runs all background work of a node.
type loops struct {
	app    *App
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// start runs each loop at once and then at its pace, until stop.
func (l *loops) start(ctx context.Context, all []loop) {
	ctx, l.cancel = context.WithCancel(ctx)
	for _, one := range all {
		l.app.metrics.failures.WithLabelValues(one.name) // a count that begins at 1 is no increase to Prometheus
		l.wg.Go(func() { l.follow(ctx, one) })
	}
}

func (l *loops) follow(ctx context.Context, one loop) {
	tick := time.NewTicker(one.every)
	defer tick.Stop()
	for {
		if err := one.run(ctx); err != nil && !errors.Is(err, context.Canceled) && ctx.Err() == nil {
			l.app.logger.ErrorContext(ctx, "background work failed", "loop", one.name, "err", err)
			l.app.metrics.failures.WithLabelValues(one.name).Inc()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// stop ends all loops and waits for them, but not longer than ctx.
func (l *loops) stop(ctx context.Context) {
	if l.cancel == nil {
		return
	}
	l.cancel()
	done := make(chan struct{})
	go func() {
		l.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// each calls fn for every id, several at once, and returns the first error.
func each[T any](ctx context.Context, ids []T, atOnce int, fn func(context.Context, T) error) error {
	var wg sync.WaitGroup
	var once sync.Once
	var first error
	slots := make(chan struct{}, atOnce)
	for _, it := range ids {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := fn(ctx, it); err != nil {
				once.Do(func() { first = err })
			}
		})
	}
	wg.Wait()
	return first
}

// background lists everything a node does without being asked.
func (a *App) background() []loop {
	all := append(a.always(), a.catalogue()...)
	if a.testpay != nil {
		all = append(all, loop{"test renewals", 10 * time.Second, a.testpay.RenewDue},
			loop{"test payments", time.Second, a.testpay.DeliverDue})
	}
	return all
}

// always lists what every node does, however it is set up.
func (a *App) always() []loop {
	return []loop{
		{"clock", time.Second, a.followClock},
		{"master keys", 2 * time.Second, a.ring.Follow},
		{"node", 2 * time.Second, a.pods.Beat},
		{"pods", 500 * time.Millisecond, func(ctx context.Context) error {
			due, err := a.pods.Sweep(ctx)
			if err != nil {
				return err
			}
			return each(ctx, due, 16, a.pods.Reconcile)
		}},
		{"instances", time.Second, func(ctx context.Context) error {
			due, err := a.pods.SweepInstances(ctx)
			if err != nil {
				return err
			}
			return each(ctx, due, 16, a.pods.Terminate)
		}},
		{"orders", time.Second, func(ctx context.Context) error {
			a.pods.FollowOrders(ctx)
			return nil
		}},
		{"reaper", time.Minute, a.pods.Reap},
		{"machines' deadlines", 10 * time.Minute, a.pods.KeepMachines},
		{"exhaustion", 500 * time.Millisecond, a.meter.FollowSweep},
		{"settlement", time.Minute, a.meter.SettleSweep},
		{"ledger check", time.Minute, func(ctx context.Context) error { return a.wallet.CheckNight(ctx, a.clock.Now()) }},
		{"automatic top-ups", time.Second, a.payments.FollowAutoTopUps},
		{"payments", time.Minute, a.payments.ReadOpen},
		{"clearing", 10 * time.Minute, a.payments.FollowBook},
		{"refunds and disputes", 6 * time.Hour, a.payments.ReadCases},
		{"late money", 10 * time.Second, a.returnLateMoney},
		{"unpaid teams", time.Minute, a.payments.ExpireTeams},
		{"unpaid plans", time.Minute, a.payments.FollowGraces},
		{"ended plans", time.Minute, a.payments.FollowEndings},
		{"snapshots", 10 * time.Second, a.volumes.PublishDue},
		{"purge", time.Minute, a.timely(a.meter.PurgeSweep)},
		{"volume keys", time.Minute, a.volumes.LockDue},
		{"locked volumes", 2 * time.Second, a.volumes.FollowLocks},
		{"staged snapshots", time.Hour, a.volumes.SweepStaging},
		{"collection", time.Minute, a.timely(a.volumes.CollectDue)},
		{"garbage", 10 * time.Minute, a.timely(a.volumes.SweepGarbage)},
		{"scrub", 10 * time.Minute, a.volumes.ScrubDue},
		{"answers", time.Hour, a.forgetAnswers},
		{"sign-in", 5 * time.Minute, a.auth.Sweep},
	}
}

// timely has a pass that takes things away for good go by the database's clock as
// it is now: this machine's may have jumped since it was followed last.
func (a *App) timely(pass func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := a.followClock(ctx); err != nil {
			return err
		}
		return pass(ctx)
	}
}

// offersEvery is how often the catalogue is asked for.
const offersEvery = 30 * time.Second

// catalogue asks each cloud for its offers, and for what is left of our money
// there, in loops of its own: one that hangs delays no other.
func (a *App) catalogue() []loop {
	var all []loop
	for name := range a.offers.Adapters {
		if a.offers.TellsBalance(name) {
			all = append(all, loop{"balance at " + name, time.Minute, func(ctx context.Context) error { return a.offers.ReadBalance(ctx, name) }})
		}
		all = append(all, loop{"offers of " + name, offersEvery, func(ctx context.Context) error { return a.offers.RefreshOne(ctx, name) }})
	}
	return all
}
