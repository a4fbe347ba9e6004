// Package bench measures the whole system as its users meet it, beside what
// the same machine can do at best, and puts the tables of all benchmarks into
// one report. It measures only when HOMEPORT_BENCH says smoke or full, which
// scripts/bench does.
package bench_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"homeport.dev/homeport/internal/bintest"
)

const (
	modeEnv = "HOMEPORT_BENCH"     // smoke or full
	outEnv  = "HOMEPORT_BENCH_OUT" // folder of the results, for the report
)

// A size says how much is measured.
type size struct {
	starts int           // first and later starts
	pods   int           // one after the other
	crowd  int           // at once
	broke  int           // pods whose wallet runs out
	rounds int           // interleaved pairs
	conns  int           // connections of the load generator
	each   time.Duration // of one half of a pair
	offers int           // in the catalogue
	rows   int           // transfers in the ledger
}

var sizes = map[string]size{
	"smoke": {starts: 1, pods: 2, crowd: 3, broke: 1, rounds: 1, conns: 8, each: 300 * time.Millisecond, offers: 200, rows: 5000},
	"full":  {starts: 5, pods: 50, crowd: 100, broke: 20, rounds: 5, conns: 64, each: 3 * time.Second, offers: 10_000, rows: 1_000_000},
}

// measured returns the size to measure with, or skips the test.
func measured(t *testing.T) size {
	t.Helper()
	z, ok := sizes[os.Getenv(modeEnv)]
	if !ok {
		t.Skip("set " + modeEnv + " to smoke or full to measure")
	}
	return z
}

// bin is the folder of the binaries.
var bin string

func TestMain(m *testing.M) {
	if _, measuring := sizes[os.Getenv(modeEnv)]; !measuring {
		os.Exit(m.Run())
	}
	os.Exit(bintest.Run(m, &bin, "-trimpath", "-ldflags=-s -w"))
}

// quantile is the value below which a share of sorted values lies.
func quantile[T cmp.Ordered](sorted []T, share float64) T {
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}

func median(values []float64) float64 {
	return quantile(slices.Sorted(slices.Values(values)), 0.5)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// load is the load average of the last minute.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
