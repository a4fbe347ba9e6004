package wallet_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/fail"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/pg/pgtest"
	"homeport.dev/homeport/internal/wallet"
)

// TestSettlementSurvivesKills kills a settling process at each of its points,
// and lets another one go on. Each day is posted once.
func TestSettlementSurvivesKills(t *testing.T) {
	t.Parallel()
	address := pgtest.URL(t)
	h := openHouse(t, address)
	scope := h.scope()
	h.credit(scope.TeamID(), 1000*money.Dollar)
	h.start(scope.TeamID(), wallet.PodRuntime, perHour)
	h.start(scope.TeamID(), wallet.VolumeStorage, perHour/10)
	h.clock.Advance(4 * 24 * time.Hour)
	want := h.balance(scope).Balance
	for _, point := range []string{"wallet.settle.inserted", "wallet.settle.committed:2", "wallet.settle.inserted:2"} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSettlingProcess$")
		cmd.Env = append(os.Environ(), "WALLET_TEST_DATABASE="+address, "WALLET_TEST_POINT="+point)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("%s: the process was not killed: %v: %s", point, err, out)
		}
		// The dead process's transaction ends when the server notices: wait for its lock.
		h.do(func(ctx context.Context, tx pgx.Tx) error {
			return h.w.RequireTx(ctx, tx, scope.TeamID(), money.Cent, h.clock.Now())
		})
		h.wantBalance(scope, want)
		h.verify()
	}
	h.settle()
	h.wantBalance(scope, want)
	h.verify()
	var windows int
	err := h.pool.QueryRow(t.Context(), `select count(*) from transfer where code = 'charge'`).Scan(&windows)
	if err != nil || windows != 2*4 {
		t.Errorf("%d windows were posted (%v), want 8", windows, err)
	}
}

// TestSettlingProcess is the process that is killed; alone it does nothing.
func TestSettlingProcess(t *testing.T) {
	address := os.Getenv("WALLET_TEST_DATABASE")
	if address == "" {
		t.Skip("started by TestSettlementSurvivesKills only")
	}
	if err := fail.Arm(os.Getenv("WALLET_TEST_POINT")); err != nil {
		t.Fatal(err)
	}
	h := openHouse(t, address)
	h.clock.Advance(4 * 24 * time.Hour)
	h.settle()
}

// openHouse opens a house on a database that is there.
func openHouse(t testing.TB, address string) *house {
	t.Helper()
	pool, err := pg.Open(context.WithoutCancel(t.Context()), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return houseOn(t, pool, clock.Fixed(noon), slog.New(slog.DiscardHandler))
}
