package e2e_test

import (
	"errors"
	"net/http"
	"sync"
	"syscall"
	"testing"

	"homeport.dev/homeport/internal/apiclient"
	"homeport.dev/homeport/internal/apitype"
)

// TestParallelCreatesMakeOnePod asks for the same pod 64 times at once, on two
// nodes that share one database: one pod is made, with one machine.
func TestParallelCreatesMakeOnePod(t *testing.T) {
	t.Parallel()
	a := newServer(t)
	a.start()
	b := a.peer()
	b.start()
	u := a.signIn()
	u.pay("25")
	u.addKey()
	v, err := u.CreateVolume(t.Context(), "data")
	if err != nil {
		t.Fatal(err)
	}
	order := u.order(u.offer("H100_80GB"), v.ID)
	made, refused := race(t, order, u, u.on(b))
	if len(made) != 1 || refused != 63 {
		t.Fatalf("%d pods were made, %d requests refused with 409, of 64", len(made), refused)
	}
	p := u.waitFor(made[0].ID, "ready")
	if n := len(a.machines()); n != 1 {
		t.Errorf("%d machines for one pod", n)
	}

	// The node that made it is killed; the other one carries on.
	a.end(syscall.SIGKILL)
	other := u.on(b)
	if got := other.run(p, "echo alive"); got != "alive\n" {
		t.Errorf("the pod said %q after its node was killed", got)
	}
	p = other.end(p.ID)
	other.checkMoney("25", []apitype.Pod{p}, v.ID)
	checkNothingLeft(t, b)
}

// race sends the order 64 times at once, spread over the nodes.
func race(t *testing.T, order apitype.CreatePod, nodes ...*user) (made []apitype.Pod, refused int) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			p, err := nodes[i%len(nodes)].CreatePod(t.Context(), order)
			mu.Lock()
			defer mu.Unlock()
			var r *apiclient.Refusal
			switch {
			case err == nil:
				made = append(made, p)
			case errors.As(err, &r) && r.Status == http.StatusConflict && r.Detail == "Volume is in use":
				refused++
			default:
				t.Errorf("a create ended with %v", err)
			}
		})
	}
	wg.Wait()
	return made, refused
}

// TestPodsOutliveTheServer proves that a killed, and then a stopped, control
// plane disturbs no pod: the same machine goes on, is found again and can be
// ended, and its last sync is complete.
func TestPodsOutliveTheServer(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start()
	u := s.signIn()
	u.pay("25")
	u.addKey()
	v, err := u.CreateVolume(t.Context(), "data")
	if err != nil {
		t.Fatal(err)
	}
	p := u.rent(u.offer("A100_80GB"), v.ID)
	boot := u.run(p, "cut -d' ' -f22 /proc/1/stat; echo kept > /workspace/kept")
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		s.end(sig)
		if got := u.run(p, "cut -d' ' -f22 /proc/1/stat"); got != boot {
			t.Errorf("after %v the pod's first process started at %q, want %q", sig, got, boot)
		}
		s.start()
	}
	if got := u.waitFor(p.ID, "ready"); got.ID != p.ID {
		t.Errorf("another pod is ready: %s", got.ID)
	}
	u.end(p.ID)
	p2 := u.rent(u.offer("A100_80GB"), v.ID)
	if got := u.run(p2, "cat /workspace/kept"); got != "kept\n" {
		t.Errorf("the next pod has %q", got)
	}
	u.end(p2.ID)
	checkNothingLeft(t, s)
}
