//go:build linux

package sandbox_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"homeport.dev/homeport/internal/clock"
)

// BenchmarkLaunch measures the time from Launch to PID 1 set up, one machine at a time.
func BenchmarkLaunch(b *testing.B) {
	s, err := newSandbox(b.TempDir(), nil)
	if err != nil {
		b.Fatal(err)
	}
	ctx := b.Context()
	if err := s.Supported(ctx); err != nil {
		b.Skip(err)
	}
	c := s.Clouds()["saltpier"]
	offers, err := c.Offers(ctx)
	if err != nil {
		b.Fatal(err)
	}
	wall := clock.New()
	var took []time.Duration
	n := 0
	for b.Loop() {
		began := wall.Wall()
		m, err := c.Launch(ctx, request(fmt.Sprintf("hp-bench-%d", n), offers[0], 0))
		if err != nil {
			b.Fatal(err)
		}
		took = append(took, wall.Wall().Sub(began))
		n++
		b.StopTimer()
		if err := c.Terminate(ctx, m.Ref); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
	if err := s.Stop(ctx); err != nil {
		b.Fatal(err)
	}
}
