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
	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/wallet"
)

// TestEventsSurviveKills kills a process while it handles an event, and sends
// the event again, as processors do. It is credited once.
func TestEventsSurviveKills(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"payment.event.claimed", "payment.event.committed"} {
		d := newDesk(t)
		event := paid(d.order("12.34"), "pi_1")
		d.killAt(point, event)
		d.mustReceive(event)
		d.want(1234*money.Cent, 1)
	}
}

// TestNewTeamsSurviveKills does the same with the event that makes a team.
func TestNewTeamsSurviveKills(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"payment.event.claimed", "payment.event.committed"} {
		f := newDesk(t).found("3")
		event := subscribed(f.session, "sub_1")
		f.killAt(point, event)
		f.mustReceive(event)
		f.wantTeam(3)
	}
}

// killAt has another process handle an event until it is killed at a point.
func (d *desk) killAt(point string, event notice) {
	d.t.Helper()
	body := event.body(d.t)
	cmd := exec.CommandContext(d.t.Context(), os.Args[0], "-test.run=^TestReceivingProcess$")
	cmd.Env = append(os.Environ(), "PAYMENT_TEST_DATABASE="+d.pool.Config().ConnString(), "PAYMENT_TEST_POINT="+point,
		"PAYMENT_TEST_BODY="+base64.StdEncoding.EncodeToString(body), "PAYMENT_TEST_SIGNATURE="+sign(body, secret, d.clock.Wall()))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		d.t.Fatalf("%s: the process was not killed: %v: %s", point, err, out)
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
	w := wallet.New(wallet.Deps{Pool: pool, Clock: now.Clock, Logger: logger})
	pay := payment.New(payment.Deps{
		Pool: pool, Clock: now.Clock, Logger: logger, Processor: &bank{}, Wallet: w, Jobs: &job.Recorder{},
		Teams: team.New(team.Deps{Pool: pool, Clock: now.Clock, Hooks: team.Hooks{OpenWallet: w.OpenTx}}),
	})
	t.Fatal("not killed: ", pay.Receive(t.Context(), body, os.Getenv("PAYMENT_TEST_SIGNATURE")))
}
