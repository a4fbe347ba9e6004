package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"homeport.dev/homeport/internal/apitype"
	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/fail"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/provider/sandbox"
)

// An Admin is what the operator's commands stand on: the services of a node
// that serves nothing. It joins a running server's database, or starts the
// database for the length of the command.
type Admin struct{ app *App }

// OpenAdmin opens it; logs go to logs. Close it.
func OpenAdmin(ctx context.Context, c Config, logs io.Writer) (*Admin, error) {
	if c.DatabaseURL == "" {
		address, err := pg.AttachEmbedded(ctx, c.StateDir)
		if err == nil {
			c.DatabaseURL = address
		} else if !errors.Is(err, pg.ErrNotRunning) {
			return nil, err
		}
	}
	a, err := open(ctx, c, logs)
	if err != nil {
		return nil, err
	}
	if c.Failpoint != "" {
		if err := fail.Arm(c.Failpoint); err != nil {
			return nil, errors.Join(err, a.close(ctx))
		}
	}
	return &Admin{app: a}, nil
}

// Close ends it.
func (m *Admin) Close(ctx context.Context) error { return m.app.close(ctx) }

// A Repository is what a plain restic needs to give a volume's files back.
type Repository struct {
	Repository string `json:"repository"` // absolute folder, or bucket, as after -r
	Password   string `json:"password"`
	Snapshot   string `json:"snapshot"` // the head, which is what latest means
	TeamKey    bool   `json:"team_key"` // the password is the team's key, which is not known here
}

// VolumeRepository is the emergency exit: it names a volume's repository.
func (m *Admin) VolumeRepository(ctx context.Context, volumeID uuid.UUID) (Repository, error) {
	if err := m.app.volumes.PublishDue(ctx); err != nil {
		return Repository{}, err
	}
	r, err := m.app.volumes.Repository(ctx, volumeID)
	if err != nil {
		return Repository{}, err
	}
	return Repository{Repository: m.app.blobs(r.Path), Password: r.Password, Snapshot: r.Head, TeamKey: r.TeamKey}, nil
}

// ArmReaper confirms that the machines of a restored database were looked
// through. It returns since when that was due, nil if it was not.
func (m *Admin) ArmReaper(ctx context.Context) (*time.Time, error) { return m.app.pods.Arm(ctx) }

// CutOffPod ends a pod's last sync at its last committed snapshot. It returns how
// the pod is then, and what is said of it.
func (m *Admin) CutOffPod(ctx context.Context, podID uuid.UUID) (status, detail string, err error) {
	p, err := m.app.pods.CutOff(ctx, podID)
	return string(p.Status), p.StatusDetail, err
}

// Migrations lists the schema's migrations and when each was applied.
func (m *Admin) Migrations(ctx context.Context) ([]pg.Migration, error) {
	return pg.MigrationStatus(ctx, m.app.pool)
}

// A LedgerReport is what a recomputation of the books found.
type LedgerReport struct {
	OK           bool            `json:"ok"`
	Wallets      int64           `json:"wallets"`
	Segments     int64           `json:"segments"`
	Transfers    int64           `json:"transfers"`
	ImbalanceUSD apitype.Decimal `json:"imbalance_usd"`
	Problems     []LedgerProblem `json:"problems"`
}

// A LedgerProblem is one row that is wrong.
type LedgerProblem struct {
	Kind   string          `json:"kind"`
	Row    string          `json:"row"`
	TeamID uuid.UUID       `json:"team_id"`
	Detail string          `json:"detail"`
	OffUSD apitype.Decimal `json:"off_usd"`
}

// VerifyLedger recomputes every wallet from its transfers and segments. It
// changes nothing, and no one waits for it.
func (m *Admin) VerifyLedger(ctx context.Context) (LedgerReport, error) {
	found, err := m.app.wallet.Recompute(ctx)
	if err != nil {
		return LedgerReport{}, err
	}
	r := LedgerReport{
		OK: len(found.Problems) == 0, Wallets: found.Wallets, Segments: found.Segments, Transfers: found.Transfers,
		ImbalanceUSD: apitype.Decimal(found.Imbalance().Decimal()), Problems: []LedgerProblem{},
	}
	for _, p := range found.Problems {
		r.Problems = append(r.Problems, LedgerProblem{
			Kind: p.Kind, Row: p.Row, TeamID: p.TeamID, Detail: p.Detail, OffUSD: apitype.Decimal(p.Off.Decimal()),
		})
	}
	return r, nil
}

// A ClearingReport is what a comparison of the payment processor's book with
// the clearing account found. Amounts are in USD.
type ClearingReport struct {
	OK            bool              `json:"ok"`
	Days          []ClearingDay     `json:"days"` // that were read
	Repaired      int               `json:"repaired"`
	DifferenceUSD apitype.Decimal   `json:"difference_usd"` // but for what was acknowledged
	Differing     int               `json:"differing"`      // problems that were not
	Problems      []ClearingProblem `json:"problems"`
}

// A ClearingDay is a UTC day of the processor's book, summed up.
type ClearingDay struct {
	Day         string          `json:"day"`
	Movements   int             `json:"movements"`
	PaymentsUSD apitype.Decimal `json:"payments_usd"`
	RefundsUSD  apitype.Decimal `json:"refunds_usd"`
	DisputesUSD apitype.Decimal `json:"disputes_usd"`
	FeesUSD     apitype.Decimal `json:"fees_usd"`
	PayoutsUSD  apitype.Decimal `json:"payouts_usd"`
	OthersUSD   apitype.Decimal `json:"others_usd"`
}

// A ClearingProblem is something about which the two books differ.
type ClearingProblem struct {
	Kind    string          `json:"kind"`
	Subject string          `json:"subject"`
	Payment string          `json:"payment"`
	FoundAt time.Time       `json:"found_at"`
	Detail  string          `json:"detail"`
	OffUSD  apitype.Decimal `json:"off_usd"`
	// Of one that an operator acknowledged: it counts no more.
	AcknowledgedAt *time.Time `json:"acknowledged_at,omitempty"`
	AcknowledgedBy string     `json:"acknowledged_by,omitempty"`
	Note           string     `json:"note,omitempty"`
}

// AcknowledgeClearing notes that somebody knows why the books differ about a
// subject, and returns what they differ in. It asks the processor nothing.
func (m *Admin) AcknowledgeClearing(ctx context.Context, subject, note, by string) (ClearingReport, error) {
	if err := m.app.payments.Acknowledge(ctx, subject, note, by); err != nil {
		return ClearingReport{}, err
	}
	problems, err := m.app.payments.ClearingProblems(ctx)
	if err != nil {
		return ClearingReport{}, err
	}
	return clearingReport(payment.Reconciliation{Problems: problems}), nil
}

// ReconcileClearing compares the processor's book with the clearing account: of
// a day, as 2027-03-14, or without one of all days that are over and were not
// compared.
func (m *Admin) ReconcileClearing(ctx context.Context, day string) (ClearingReport, error) {
	compare := m.app.payments.Reconcile
	if day != "" {
		at, err := time.Parse(time.DateOnly, day)
		if err != nil {
			return ClearingReport{}, fmt.Errorf("%q is not a day as 2027-03-14", day)
		}
		compare = func(ctx context.Context) (payment.Reconciliation, error) { return m.app.payments.ReconcileDay(ctx, at) }
	}
	found, err := compare(ctx)
	if err != nil {
		return ClearingReport{}, err
	}
	return clearingReport(found), nil
}

func clearingReport(found payment.Reconciliation) ClearingReport {
	usd := func(amount money.USD) apitype.Decimal { return apitype.Decimal(amount.Decimal()) }
	off, places := found.Difference()
	r := ClearingReport{
		OK: places == 0, Days: []ClearingDay{}, Repaired: found.Repaired, DifferenceUSD: usd(off), Differing: places,
		Problems: []ClearingProblem{},
	}
	for _, d := range found.Days {
		r.Days = append(r.Days, ClearingDay{
			Day: d.Day.Format(time.DateOnly), Movements: d.Movements, PaymentsUSD: usd(d.Payments), RefundsUSD: usd(d.Refunds),
			DisputesUSD: usd(d.Disputes), FeesUSD: usd(d.Fees), PayoutsUSD: usd(d.Payouts), OthersUSD: usd(d.Others),
		})
	}
	for _, p := range found.Problems {
		r.Problems = append(r.Problems, ClearingProblem{
			Kind: p.Kind, Subject: p.Subject, Payment: p.PaymentID, FoundAt: p.FoundAt, Detail: p.Detail, OffUSD: usd(p.Off),
			AcknowledgedAt: p.AckedAt, AcknowledgedBy: p.AckedBy, Note: p.Note,
		})
	}
	return r
}

// SandboxStop ends every sandbox pod of the state folder and returns how many.
// It needs no database.
func SandboxStop(ctx context.Context, c Config, logs io.Writer) (int, error) {
	logger := slog.New(slog.NewJSONHandler(logs, nil))
	s, err := sandbox.New(sandbox.Config{Dir: filepath.Join(c.StateDir, "sandbox"), Clock: clock.New(), Logger: logger})
	if err != nil {
		return 0, err
	}
	return s.StopAll(ctx)
}

// Failpoints lists the registered failpoints.
func Failpoints() []string { return fail.Names }

// SSHConfig is the snippet with which the ssh commands shown in the page work
// where names below localhost do not resolve.
func SSHConfig(c Config) string {
	return fmt.Sprintf("Host *.%s\n    HostName 127.0.0.1\n", c.PodHost)
}
