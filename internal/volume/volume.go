// Package volume owns volumes: their names, their attachment to one pod at a
// time, the objects and snapshots of their data in the blob store, and what
// they weigh.
//
// What always holds: a volume is attached to at most one pod; every attach and
// every release raises its epoch, and nothing of an older epoch is signed or
// committed; the head moves only in one statement guarded by epoch and parent;
// size and price are computed here, never taken from an agent; of a volume
// whose key only its team holds nothing that opens it is kept while it is
// locked, and no pod holds a locked one. The format of the data belongs to
// snapshot, money to wallet, machines to pod.
package volume

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/blob"
	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/seal"
	"homeport.dev/homeport/internal/snapshot"
	"homeport.dev/homeport/internal/wallet"
)

// Sizes in bytes.
const (
	QuotaBytes    = 500_000_000_000   // what a volume holds
	refuseBytes   = 525_000_000_000   // background syncs are refused above (105 %)
	HardStopBytes = 1_000_000_000_000 // nothing at all is taken above

	keptMost   = 3 * QuotaBytes  // see Deps
	storedMost = 10 * QuotaBytes // see Deps
)

// Faults of this package.
var (
	// ErrNotFound occurs when the team has no such volume, or it is deleted.
	ErrNotFound = fault.New(fault.NotFound, "volume_not_found", "There is no such volume.")
	// ErrInUse occurs when a pod holds the volume.
	ErrInUse = fault.New(fault.Conflict, "volume_in_use", "Volume is in use")
	// ErrFrozen occurs when a volume whose storage was not paid is to be used.
	ErrFrozen = fault.New(fault.PaymentRequired, "volume_frozen", "This volume is frozen because its storage was not paid. Add credit to your wallet to use it again.")
	// ErrNotYours occurs when a member deletes or restores the volume of somebody else.
	ErrNotYours = fault.New(fault.Forbidden, "volume_role", "Only the person who created this volume or an admin can do this.")
	// ErrPlanLimit occurs when the plan allows no further volume.
	ErrPlanLimit = fault.New(fault.Forbidden, "volume_plan_limit", "Hobby teams can have 1 volume. Upgrade to Pro for unlimited volumes.")
	// ErrName occurs when a name is too long.
	ErrName = fault.New(fault.Invalid, "volume_name", "The name must have at most 80 characters.")
	// ErrFenced occurs when an attachment is over: its epoch is old.
	ErrFenced = fault.New(fault.Conflict, agentapi.CodeFenced, "This pod no longer holds the volume.")
	// ErrParent occurs when a commit does not build on the head.
	ErrParent = fault.New(fault.Conflict, agentapi.CodeParent, "The volume has another head.")
	// ErrQuota occurs when a volume is too full to take more.
	ErrQuota = fault.New(fault.Conflict, agentapi.CodeQuota, "The volume is over its quota of 500 GB. Delete files to go on syncing.")
	// ErrNotRestored occurs when a commit comes before the restore was reported complete.
	ErrNotRestored = fault.New(fault.Conflict, "not_restored", "The volume is not restored yet.")
	// ErrCommit occurs when a commit or a request for grants contradicts itself or the store.
	ErrCommit = fault.New(fault.Invalid, "commit_invalid", "The commit is not valid.")
	// ErrObject occurs when a grant is asked for an object that is not the volume's.
	ErrObject = fault.New(fault.NotFound, "object_unknown", "The volume has no such object.")
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
	PurgeAt       *time.Time // when the trash lets go of it; nil outside the trash
	LastCommitAt  *time.Time
	Epoch         int64
	HeadSnapshot  []byte // nil: never committed
	HeadSeq       int64
	TeamKey       bool // its key is its team's alone
	Locked        bool // and has to be given before anything reads the volume
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

// QuotaPercent is how full the volume is, rounded down.
func (v Volume) QuotaPercent() int { return int(v.SizeBytes / (QuotaBytes / 100)) }

// QuotaNotice is what to tell the user about a volume that is almost full, or
// full: for the card, a mail and the message of the day. It is empty below 90 %.
func (v Volume) QuotaNotice() string {
	switch p := v.QuotaPercent(); {
	case v.SizeBytes > refuseBytes:
		return fmt.Sprintf("Volume %q holds %s of 500 GB. Background sync is paused: delete files to resume it.", v.Name, v.SizeGB())
	case p >= 100:
		return fmt.Sprintf("Volume %q is full: %s of 500 GB. Above 105 %% background sync stops.", v.Name, v.SizeGB())
	case p >= 90:
		return fmt.Sprintf("Volume %q is %d %% full: %s of 500 GB.", v.Name, p, v.SizeGB())
	}
	return ""
}

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
	// Unchecked says that the store takes other bytes than an upload's grant
	// names: commits read back what was uploaded.
	Unchecked func() bool
	// OnCommitTx joins the transaction that moves a head; it may lock the pod,
	// and runs before the volume is locked.
	OnCommitTx func(ctx context.Context, tx pgx.Tx, volumeID, podID uuid.UUID, final bool, at time.Time) error
	// OnFinal follows a final snapshot that a sweep published because the node
	// that committed it could not: nobody was told of it yet.
	OnFinal func(ctx context.Context, volumeID, podID uuid.UUID) error
	// Retention says which versions are kept. The zero one keeps the newest only.
	Retention Retention
	// KeptMost bounds, in bytes as stored, what all kept versions of a volume hold
	// together: beyond it the oldest go, but never the newest. 0 = 1,500 GB.
	KeptMost int64
	// StoredMost is how many bytes of a volume may lie in the store before a pod's
	// background syncs with new file data are refused: versions that will go, and
	// what went less than a day ago, count. 0 = 5,000 GB.
	StoredMost int64
	// KeepGarbage is how long what a collection replaced stays in the store, so
	// that an older backup of the database finds it; less than a day is a day.
	KeepGarbage time.Duration
	// RestoredAt says since when the database is a restored one that the operator
	// has not confirmed; nil = it is not. Who took a volume out of the trash after
	// its backup is not in it, so nothing is purged until then. nil: it never is.
	RestoredAt func(ctx context.Context) (*time.Time, error)
	// OnPurgeTx records that a volume's data is gone for good.
	OnPurgeTx func(ctx context.Context, tx pgx.Tx, p Purged) error
}

// A Service carries out the use cases of volumes.
type Service struct {
	Deps
	measured  *snapshot.MeasureCache
	folders   *snapshot.FolderCache
	opened    *opened
	downloads downloads
	keyFiles  chan struct{} // a place for each that is made or opened
}

// What a node remembers: the sizes of so many trees, and so many bytes of the
// folders that people look into.
const (
	cachedTrees   = 200_000
	cachedFolders = 64 << 20
)

// New returns the service.
func New(d Deps) *Service {
	s := &Service{
		Deps: d, measured: snapshot.NewMeasureCache(cachedTrees), folders: snapshot.NewFolderCache(cachedFolders),
		keyFiles: make(chan struct{}, keyFilesAtOnce),
	}
	s.opened = newOpened(func(key snapshot.Key) {
		s.measured.Forget(key)
		s.folders.Forget(key)
	})
	return s
}
