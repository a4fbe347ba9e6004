package payment_test

import (
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/fail"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/wallet"
)

// TestEventsSurviveKills kills a process while it handles an event, and sends
// the event again, as processors do. It is credited once.
func TestEventsSurviveKills(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"payment.event.claimed", "payment.event.committed"} {
		d := newDesk(t)
		event := paid(d.order("12.34"), "pi_1")
		body := event.body(t)
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestReceivingProcess$")
		cmd.Env = append(os.Environ(), "PAYMENT_TEST_DATABASE="+d.pool.Config().ConnString(), "PAYMENT_TEST_POINT="+point,
			"PAYMENT_TEST_BODY="+base64.StdEncoding.EncodeToString(body), "PAYMENT_TEST_SIGNATURE="+sign(body, secret, d.clock.Wall()))
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("%s: the process was not killed: %v: %s", point, err, out)
		}
		d.mustReceive(event)
		d.want(1234*money.Cent, 1)
	}
}

// TestReceivingProcess is the process that is killed; alone it does nothing.
func TestReceivingProcess(t *testing.T) {
	address := os.Getenv("PAYMENT_TEST_DATABASE")
	if address == "" {
		t.Skip("started by TestEventsSurviveKills only")
	}
	if err := fail.Arm(os.Getenv("PAYMENT_TEST_POINT")); err != nil {
		t.Fatal(err)
	}
	pool, err := pg.Open(context.WithoutCancel(t.Context()), address)
	if err != nil {
		t.Fatal(err)
	}
	body, err := base64.StdEncoding.DecodeString(os.Getenv("PAYMENT_TEST_BODY"))
	if err != nil {
		t.Fatal(err)
	}
	now, logger := clock.Fixed(noon), slog.New(slog.DiscardHandler)
	pay := payment.New(payment.Deps{
		Pool: pool, Clock: now.Clock, Logger: logger, Processor: &bank{},
		Wallet: wallet.New(wallet.Deps{Pool: pool, Clock: now.Clock, Logger: logger}),
	})
	t.Fatal("not killed: ", pay.Receive(t.Context(), body, os.Getenv("PAYMENT_TEST_SIGNATURE")))
}
