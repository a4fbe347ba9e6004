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
	server := blobtest.NewServer(t, false)
	bucket, err := s3.New(s3.Config{
		Endpoint: server.Endpoint, Region: server.Region, Bucket: server.Bucket, KeyID: server.KeyID, Secret: server.Secret,
		PathStyle: true, Wall: clock.New().Wall,
	})
	if err != nil {
		t.Fatal(err)
	}
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
