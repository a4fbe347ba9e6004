package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"

	"github.com/google/uuid"

	"homeport.dev/homeport/internal/apitype"
	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/fail"
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
	return &Admin{app: a}, nil
}

// Close ends it.
func (m *Admin) Close(ctx context.Context) error { return m.app.close(ctx) }

// A Repository is what a plain restic needs to give a volume's files back.
type Repository struct {
	Repository string `json:"repository"` // absolute folder
	Password   string `json:"password"`
	Snapshot   string `json:"snapshot"` // the head, which is what latest means
}

// VolumeRepository is the emergency exit: it names a volume's repository.
func (m *Admin) VolumeRepository(ctx context.Context, volumeID uuid.UUID) (Repository, error) {
	if err := m.app.volumes.PublishDue(ctx); err != nil {
		return Repository{}, err
	}
	prefix, password, snapshot, err := m.app.volumes.Repository(ctx, volumeID)
	if err != nil {
		return Repository{}, err
	}
	return Repository{Repository: m.app.blobs(prefix), Password: password, Snapshot: snapshot}, nil
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
