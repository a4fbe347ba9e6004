// Package volume owns volumes: their names, their attachment to one pod at a
// time, the objects and snapshots of their data in the blob store, and what
// they weigh.
//
// What always holds: a volume is attached to at most one pod; every attach and
// every release raises its epoch, and nothing of an older epoch is signed or
// committed; the head moves only in one statement guarded by epoch and parent;
// size and price are computed here, never taken from an agent. The format of
// the data belongs to snapshot, money to wallet, machines to pod.
package volume

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"homeport.dev/homeport/internal/blob"
	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/seal"
	"homeport.dev/homeport/internal/snapshot"
	"homeport.dev/homeport/internal/wallet"
)

// Sizes in bytes.
const (
	QuotaBytes    = 500e9  // what a volume holds
	refuseBytes   = 525e9  // background syncs are refused above (105 %)
	HardStopBytes = 1000e9 // nothing at all is taken above
)

// RatePerGBHundredth is the price of 0.01 GB: 0.0002 USD per GB and hour.
const RatePerGBHundredth money.Rate = 2

// A Volume is a team's /workspace.
type Volume struct {
	ID            uuid.UUID
	TeamID        uuid.UUID
	Name          string
	SizeBytes     int64 // of the last committed snapshot, as billed
	CurrentlyUsed bool  // attached to a pod
	PodID         *uuid.UUID
	Deleted       bool
	Frozen        bool // unpaid: kept without charge, not attachable
	CreatedAt     time.Time
	CreatedBy     uuid.UUID
	DeletedAt     *time.Time
	LastCommitAt  *time.Time
	Epoch         int64
	HeadSnapshot  []byte // nil: never committed
	HeadSeq       int64
}

// An Attachment is the right of one pod to a volume, as its agent's calls
// carry it.
type Attachment struct {
	VolumeID  uuid.UUID
	PodID     uuid.UUID
	Epoch     int64
	SizeBytes int64 // when attached; for display
	// Final says that the pod is ending: uploads and commits are those of its
	// final sync. Only the caller knows; the agent's word is not enough.
	Final bool
}

// SizeGBHundredths is a size in hundredths of 10^9 bytes, rounded to nearest:
// the figure that is shown and charged.
func SizeGBHundredths(bytes int64) int64 { return (bytes + 5_000_000) / 10_000_000 }

// RateOf is the price per hour of a volume of that size.
func RateOf(bytes int64) money.Rate {
	return money.Rate(SizeGBHundredths(bytes)) * RatePerGBHundredth
}

// SizeGB writes the volume's size in 10^9 bytes as an exact decimal.
func (v Volume) SizeGB() string { return money.USD(SizeGBHundredths(v.SizeBytes) * 10_000).Decimal() }

// Rate is the volume's price per hour.
func (v Volume) Rate() money.Rate { return RateOf(v.SizeBytes) }

// Deps is what the service stands on. Hooks that are nil are skipped.
type Deps struct {
	Pool   *pgxpool.Pool
	Clock  *clock.Clock
	Jobs   job.Queue
	Logger *slog.Logger
	Box    *seal.Box
	Store  blob.Store
	Signer blob.Signer
	Wallet *wallet.Service
	// OnCommitTx joins the transaction that moves a head; it may lock the pod,
	// and runs before the volume is locked.
	OnCommitTx func(ctx context.Context, tx pgx.Tx, volumeID, podID uuid.UUID, final bool, at time.Time) error
}

// A Service carries out the use cases of volumes.
type Service struct {
	Deps
	measured *snapshot.MeasureCache
}

// cachedTrees is how many trees a node remembers the sizes of.
const cachedTrees = 200_000

// New returns the service.
func New(d Deps) *Service {
	return &Service{Deps: d, measured: snapshot.NewMeasureCache(cachedTrees)}
}
