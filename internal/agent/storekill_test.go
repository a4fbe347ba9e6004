//go:build linux

package agent

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/blob/blobtest"
	"homeport.dev/homeport/internal/blob/s3"
	"homeport.dev/homeport/internal/clock"
)

// shake kills and starts the service at random instants until the end.
func shake(t *testing.T, server *blobtest.Server, rnd *rand.Rand) (end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			wait(ctx, time.Duration(rnd.IntN(150))*time.Millisecond)
			server.Kill()
			wait(ctx, time.Duration(rnd.IntN(100))*time.Millisecond)
			server.Start()
			wait(ctx, time.Duration(rnd.IntN(400))*time.Millisecond)
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

func wait(ctx context.Context, d time.Duration) { _ = sleep(ctx, d) }

// change makes, rewrites and removes files at random.
func change(t *testing.T, root string, rnd *rand.Rand) {
	t.Helper()
	for range 12 {
		path := filepath.Join(root, fmt.Sprint("d", rnd.IntN(4)), fmt.Sprint("f", rnd.IntN(12)))
		if rnd.IntN(5) == 0 {
			_ = os.Remove(path)
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		body := make([]byte, rnd.IntN(3<<20))
		for i := range body {
			body[i] = byte(rnd.Uint32())
		}
		if err := os.WriteFile(path, body, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// newBucket starts an S3 service.
func newBucket(t *testing.T) (*blobtest.Server, *s3.Store) {
	t.Helper()
	server := blobtest.NewServer(t, false)
	bucket, err := s3.New(s3.Config{
		Endpoint: server.Endpoint, Region: server.Region, Bucket: server.Bucket, KeyID: server.KeyID, Secret: server.Secret,
		PathStyle: true, Wall: clock.New().Wall,
	})
	if err != nil {
		t.Fatal(err)
	}
	return server, bucket
}

// TestAStoreThatIsKilledLosesNothing ends the S3 service again and again with
// kill -9, in the middle of syncs and of restores: each sync comes through, and
// what was committed is restored byte for byte.
func TestAStoreThatIsKilledLosesNothing(t *testing.T) {
	t.Parallel()
	rounds, seed := 2, uint64(time.Now().UnixNano())
	if n, err := strconv.Atoi(os.Getenv("HOMEPORT_SIM_ROUNDS")); err == nil {
		rounds = 20 * n
	}
	if n, err := strconv.ParseUint(os.Getenv("HOMEPORT_SIM_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("HOMEPORT_SIM_SEED=%d", seed)
	rnd := rand.New(rand.NewPCG(seed, seed))
	server, bucket := newBucket(t)
	r := newRig(t)
	r.node.bucket = bucket
	r.start(nil)
	r.node.awaitPhase(agentapi.PhaseServing)
	for range rounds {
		change(t, r.workspace, rnd)
		calm := shake(t, server, rand.New(rand.NewPCG(rnd.Uint64(), 1)))
		before := len(r.node.commits)
		r.node.command(agentapi.CommandSync)
		r.node.await("a commit", func() bool { return len(r.node.commits) > before })
		calm()
		want := tree(t, r.workspace)
		r.finish()

		next := r.next(t)
		next.node.bucket = bucket
		calm = shake(t, server, rand.New(rand.NewPCG(rnd.Uint64(), 2)))
		next.start(nil)
		next.node.awaitPhase(agentapi.PhaseServing)
		calm()
		same(t, tree(t, next.workspace), want)
		r = next
	}
	r.finish()
}

// TestAnOutageOfTheStoreIsWaitedOut ends the S3 service in the middle of a sync
// and of a restore; where bars are measured, for a minute each. Both finish by
// themselves, the pod goes on serving, and nothing counts as committed before
// it is.
func TestAnOutageOfTheStoreIsWaitedOut(t *testing.T) {
	t.Parallel()
	outage := 2 * time.Second
	if os.Getenv("HOMEPORT_BENCH") == "full" {
		outage = time.Minute
	}
	server, bucket := newBucket(t)
	begun := func(pattern string) {
		t.Helper()
		for range 10_000 {
			if found, err := filepath.Glob(pattern); err == nil && len(found) > 0 {
				return
			}
			wait(t.Context(), 2*time.Millisecond)
		}
		t.Fatalf("nothing became %s", pattern)
	}
	now := clock.New().Wall
	r := newRig(t)
	r.node.bucket = bucket
	r.start(nil)
	r.node.awaitPhase(agentapi.PhaseServing)
	r.output("", pod, "cd "+r.workspace+" && for i in 1 2 3 4; do head -c 40000000 /dev/urandom > big$i; done")
	r.node.command(agentapi.CommandSync)
	begun(server.File("v/data/*"))
	server.Kill()
	wait(t.Context(), outage)
	r.node.mu.Lock()
	commits, phases := len(r.node.commits), r.node.phases
	r.node.mu.Unlock()
	if commits != 0 || phases[len(phases)-1] != agentapi.PhaseServing {
		t.Errorf("during the outage: %d commits, phases %v", commits, phases)
	}
	r.output("", pod, "echo still served")
	server.Start()
	back := now()
	r.node.await("a commit", func() bool { return len(r.node.commits) == 1 })
	synced := now().Sub(back)
	want := tree(t, r.workspace)
	r.finish()

	next := r.next(t)
	next.node.bucket = bucket
	next.start(nil)
	begun(filepath.Join(next.workspace, "big*"))
	server.Kill()
	wait(t.Context(), outage)
	next.node.mu.Lock()
	restored, failed := next.node.restored, next.node.failed
	next.node.mu.Unlock()
	if restored != 0 || len(failed) != 0 {
		t.Errorf("during the outage: restored %d times, failures %v", restored, failed)
	}
	server.Start()
	back = now()
	next.node.awaitPhase(agentapi.PhaseServing)
	t.Attr("measured", fmt.Sprintf("outages of %s; done %.0f s and %.0f s after; served throughout", outage, synced.Seconds(), now().Sub(back).Seconds()))
	same(t, tree(t, next.workspace), want)
	next.finish()
}
