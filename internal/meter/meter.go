package meter

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/notice"
	"homeport.dev/homeport/internal/volume"
	"homeport.dev/homeport/internal/wallet"
)

// The status reasons of pods whose team ran out of money, or used up its
// month's limit.
const (
	ReasonBalance    = "balance"
	ReasonSpendLimit = "spend_limit"
)

// Pods ends the pods of teams that may not go on. Package pod implements it.
type Pods interface {
	// LockTeamTx locks all pods of a team that are not deleted, by id. It is
	// called before the wallet is locked.
	LockTeamTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID) error
	// SwitchOffTeamTx moves the team's pods that were made at or before at to
	// switching_off, in every phase but deleting, switching_off and deleted.
	// Their meters have ended already, at exactly at.
	SwitchOffTeamTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, at time.Time, reason string) error
	// TellTeamTx has the team's running pods tell who is in them what is new
	// about their end.
	TellTeamTx(ctx context.Context, tx pgx.Tx, teamID uuid.UUID) error
}

// Deps are what a Service is made of.
type Deps struct {
	Pool   *pgxpool.Pool
	Clock  *clock.Clock
	Logger *slog.Logger
	Wallet *wallet.Service
	Pods   Pods
	// Volumes are what unpaid storage is about, Notices what tells of it.
	Volumes *volume.Service
	Notices *notice.Service
	// OnLow follows a balance that fell below what its team watches, before the
	// wallet is locked. nil: nobody does.
	OnLow func(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, at time.Time) error
}

// A Service runs the sweeps over the teams' money. It is safe for concurrent
// use, also by several processes.
type Service struct{ Deps }

// New returns the meter service.
func New(d Deps) *Service { return &Service{Deps: d} }
