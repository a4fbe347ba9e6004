package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/bintest"
)

type ledgerReport struct {
	OK        bool
	Transfers int
	Imbalance json.Number `json:"imbalance_usd"`
	Problems  []struct{ Kind, Row string }
}

// TestTheOperatorVerifiesTheLedger looks at the books of a running server,
// while they are right and after somebody changed a balance by hand.
func TestTheOperatorVerifiesTheLedger(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start()
	s.signIn().pay("25.00")
	verify := func() (r ledgerReport, status int) {
		t.Helper()
		cmd := exec.Command(filepath.Join(bin, "homeport"), "ledger", "verify", "--json")
		cmd.Env = append(bintest.Environ(), s.env...)
		out, err := cmd.Output()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if err := json.NewDecoder(bytes.NewReader(out)).Decode(&r); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		return r, cmd.ProcessState.ExitCode()
	}
	if r, status := verify(); !r.OK || status != 0 || r.Transfers != 1 || len(r.Problems) != 0 {
		t.Errorf("good books: status %d, %+v", status, r)
	}
	db, err := pgx.Connect(t.Context(), s.database())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close(t.Context()) }()
	var team string
	err = db.QueryRow(t.Context(),
		`update wallet set balance_usd_micro = balance_usd_micro + 1 where balance_usd_micro > 0 returning team_id::text`).Scan(&team)
	if err != nil {
		t.Fatal(err)
	}
	r, status := verify()
	if r.OK || status != 1 || r.Imbalance != "0.000001" || len(r.Problems) != 1 || r.Problems[0].Kind != "balance" || r.Problems[0].Row != "wallet "+team {
		t.Errorf("broken books: status %d, %+v", status, r)
	}
}

// TestTheOperatorReconcilesTheClearing compares the books of a running server
// with its processor's: while they agree, and after the processor took a
// payment that is none of ours.
func TestTheOperatorReconcilesTheClearing(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start()
	s.signIn().pay("25.00")
	type report struct {
		OK         bool
		Difference json.Number `json:"difference_usd"`
		Days       []struct {
			Day      string
			Payments json.Number `json:"payments_usd"`
		}
		Problems []struct {
			Kind, Subject, Note string
			By                  string `json:"acknowledged_by"`
		}
	}
	today := time.Now().UTC().Format(time.DateOnly)
	reconcile := func(args ...string) (r report, status int) {
		t.Helper()
		if len(args) == 0 {
			args = []string{"--day", today}
		}
		cmd := exec.Command(filepath.Join(bin, "homeport"), append([]string{"ledger", "reconcile", "--json"}, args...)...)
		cmd.Env = append(bintest.Environ(), s.env...)
		out, err := cmd.Output()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if err := json.NewDecoder(bytes.NewReader(out)).Decode(&r); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		return r, cmd.ProcessState.ExitCode()
	}
	if r, status := reconcile(); !r.OK || status != 0 || len(r.Days) != 1 || r.Days[0].Day != today || r.Days[0].Payments != "25" {
		t.Errorf("books that agree: status %d, %+v", status, r)
	}
	db, err := pgx.Connect(t.Context(), s.database())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close(t.Context()) }()
	_, err = db.Exec(t.Context(), `insert into testpay_movement
		(id, kind, payment_id, case_id, subscription_id, amount_usd_micro, created_at) values ('txn_test_x', 'payment', 'pi_theirs', '', '', 7000000, $1)`,
		time.Now())
	if err != nil {
		t.Fatal(err)
	}
	r, status := reconcile()
	if r.OK || status != 1 || r.Difference != "7" || len(r.Problems) != 1 || r.Problems[0].Kind != "foreign" || r.Problems[0].Subject != "pi_theirs" {
		t.Errorf("books that differ: status %d, %+v", status, r)
	}
	acknowledge := []string{"--acknowledge", "pi_theirs", "--note", "the shop's", "--by", "ada"}
	for _, args := range [][]string{acknowledge, nil} {
		r, status := reconcile(args...)
		if !r.OK || status != 0 || r.Difference != "0" || len(r.Problems) != 1 || r.Problems[0].Note != "the shop's" || r.Problems[0].By != "ada" {
			t.Errorf("a difference that is acknowledged: status %d, %+v", status, r)
		}
	}
}
