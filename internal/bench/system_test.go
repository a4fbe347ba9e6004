package bench_test

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"homeport.dev/homeport/internal/apitype"
)

// dollars reads a decimal of the API.
func dollars(d apitype.Decimal) *big.Rat {
	r, ok := new(big.Rat).SetString(string(d))
	if !ok {
		return new(big.Rat)
	}
	return r
}

func sortedSeconds(times []time.Duration) []float64 {
	out := make([]float64, len(times))
	for i, d := range times {
		out[i] = d.Seconds()
	}
	slices.Sort(out)
	return out
}

// TestStart measures from the start of the process to the answer of /readyz:
// on an empty state folder, where a database is made first, and later.
func TestStart(t *testing.T) {
	z, at := measured(t), load()
	var first, later, stop []time.Duration
	for range z.starts {
		s := newServer(t)
		first = append(first, s.start())
		stop = append(stop, s.end(syscall.SIGTERM))
		later = append(later, s.start())
		stop = append(stop, s.end(syscall.SIGTERM))
	}
	publish(t, "10-start", topic{Title: "Start and stop", Rows: []row{
		atMost("first start to /readyz, initdb and migrations included", sortedSeconds(first), 0.5, 5, "s"),
		atMost("later start to /readyz", sortedSeconds(later), 0.5, 2, "s"),
		atMost("SIGTERM to exit, database included; the longest", sortedSeconds(stop), 1, 30, "s"),
	}, Notes: []string{fmt.Sprintf("%d starts each, median; embedded PostgreSQL on disk with fsync, polled every 5 ms.", z.starts)}}.under(at))
}

// lookAround is how long a pod is left alone between ready and DELETE.
const lookAround = 500 * time.Millisecond

// TestPods measures from POST /pods to ready, as a client sees it: one pod
// after the other, and a crowd at once.
func TestPods(t *testing.T) {
	z, at := measured(t), load()
	s := newServer(t)
	s.start()
	u := s.crowd(1, "100")[0]
	offers, err := u.offers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ready, end []time.Duration
	for i := range z.pods {
		p, took, err := u.rent(t.Context(), offers[i%len(offers)], 25*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(lookAround)
		began := time.Now()
		if err := u.end(t.Context(), p.ID); err != nil {
			t.Fatal(err)
		}
		ready, end = append(ready, took), append(end, time.Since(began))
	}
	r, e := sortedSeconds(ready), sortedSeconds(end)
	one := topic{Title: "A pod from POST to ready", Rows: []row{
		atMost("POST /pods to ready, p50", r, 0.5, 1.5, "s"),
		atMost("POST /pods to ready, p95", r, 0.95, 3, "s"),
	}}
	one.Notes = append(one.Notes, fmt.Sprintf("%d pods one after the other with an empty volume, by GET /pods every 25 ms; "+
		"ready means our own SSH login worked. DELETE to deleted with the volume free: p50 %.2f s, p95 %.2f s.",
		z.pods, quantile(e, 0.5), quantile(e, 0.95)))
	publish(t, "11-pod", one.under(at))
	crowd(t, s, z)
}

// crowd lets many teams rent at once.
func crowd(t *testing.T, s *server, z size) {
	t.Helper()
	users := s.crowd(z.crowd, "50")
	offers, err := users[0].offers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var times []time.Duration
	pods := make([]apitype.Pod, len(users))
	at := load()
	before, began := s.cpu(s.cmd.Process.Pid), time.Now()
	each(t, len(users), func(i int) error {
		p, took, err := users[i].rent(t.Context(), offers[i%len(offers)], time.Second)
		mu.Lock()
		defer mu.Unlock()
		pods[i], times = p, append(times, took)
		return err
	})
	all, used, machines := time.Since(began), s.cpu(s.cmd.Process.Pid)-before, s.machines()
	began = time.Now()
	each(t, len(users), func(i int) error { return users[i].end(t.Context(), pods[i].ID) })
	gone := time.Since(began)
	left := s.machinesLeft()
	r := sortedSeconds(times)
	publish(t, "12-crowd", topic{Title: "Many pods at once", Rows: []row{{
		Bar: fmt.Sprintf("%d pods of %d teams at once", len(users), len(users)), Demand: "all ready",
		Measured: fmt.Sprintf("%d ready in %s", len(times), seconds(all)), Spread: fmt.Sprintf("%.2f to %.2f", r[0], r[len(r)-1]),
		CPU: fmt.Sprintf("%.1f s", used.Seconds()), Verdict: verdictOf(len(times) == len(users) && machines == len(users)),
	}, {
		Bar: "folders of ended machines that are left", Demand: "0", Measured: strconv.Itoa(left), Verdict: verdictOf(left == 0),
	}}, Notes: []string{fmt.Sprintf("POST to ready p50 %.2f s, p95 %.2f s, %.1f pods per second; CPU is that of server and database. "+
		"All deleted, synced and free %s after the first DELETE.",
		quantile(r, 0.5), quantile(r, 0.95), float64(len(users))/all.Seconds(), seconds(gone))}}.under(at))
}

// TestExhaustion measures how soon after the instant at which a wallet was
// empty its pods are switched off, and that the customer paid for no more.
func TestExhaustion(t *testing.T) {
	z, at := measured(t), load()
	s := newServer(t)
	s.start()
	users := s.crowd(z.broke, "0.01")
	offers, err := users[0].offers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dearest := offers[0] // a cent lasts for seconds
	var mu sync.Mutex
	var late []time.Duration
	var overspent int
	each(t, len(users), func(i int) error {
		u := users[i]
		p, _, err := u.rent(t.Context(), dearest, 200*time.Millisecond)
		if err != nil {
			return err
		}
		p, err = u.waitFor(t.Context(), p.ID, 50*time.Millisecond, "switching_off", "deleted")
		seen := time.Now()
		if err != nil {
			return err
		}
		if p.StatusReason != "balance" || p.MeteredUntil == nil {
			return fmt.Errorf("the pod ended for %q, metered until %v", p.StatusReason, p.MeteredUntil)
		}
		if _, err := u.waitFor(t.Context(), p.ID, time.Second, "deleted"); err != nil {
			return err
		}
		b, err := u.Balance(t.Context())
		mu.Lock()
		defer mu.Unlock()
		late = append(late, seen.Sub(*p.MeteredUntil))
		if dollars(b.Balance).Sign() < 0 {
			overspent++
		}
		return err
	})
	publish(t, "13-exhaustion", topic{Title: "An empty wallet", Rows: []row{
		atMost("wallet empty to switching_off, p99", sortedSeconds(late), 0.99, 2, "s"),
		{
			Bar: "balances below zero", Demand: "0", Measured: fmt.Sprintf("%d of %d", overspent, len(users)),
			Verdict: verdictOf(overspent == 0),
		},
	}, Notes: []string{fmt.Sprintf("%d pods whose cent ends; the meter stops at the very microsecond, the status is read every 50 ms.", len(users))}}.under(at))
}
