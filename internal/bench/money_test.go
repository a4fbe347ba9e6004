package bench_test

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"homeport.dev/homeport/internal/pg"
)

// TestDurable runs the transfers of internal/wallet on a PostgreSQL as homeport
// starts it, which waits for the disk at each commit; the tests' own does not.
func TestDurable(t *testing.T) {
	measured(t)
	dir := os.Getenv(outEnv)
	if dir == "" {
		t.Skip("only run by scripts/bench")
	}
	state, err := os.MkdirTemp("", "hpb") //nolint:usetesting // short: sockets live below it
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(state)
	if err := os.Chmod(state, 0o711); err != nil {
		t.Fatal(err)
	}
	db, err := pg.StartEmbedded(t.Context(), pg.EmbeddedConfig{StateDir: state, NPMDirs: []string{"../../web/node_modules"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := db.Stop(ctx); err != nil {
			t.Error(err)
		}
	}()
	address, err := url.Parse(db.URL())
	if err != nil {
		t.Fatal(err)
	}
	address.Path = "/postgres"
	out, err := os.Create(filepath.Join(dir, "durable.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	bench := exec.CommandContext(t.Context(), "go", "test", "-timeout", "60m", "-run", "^$", "-bench", "Transfer", "-benchtime", "1x", "../wallet")
	bench.Env = append(os.Environ(), "HOMEPORT_TEST_DATABASE_URL="+address.String())
	bench.Stdout, bench.Stderr = out, out
	if err := bench.Run(); err != nil {
		text, _ := os.ReadFile(out.Name())
		t.Fatalf("the benchmarks of internal/wallet: %v\n%s", err, text)
	}
}
