// Package pod rents pods and gives them back. It owns the pod, what the team
// sees, and the instance, one machine at one provider; during set-up a pod may
// use several instances in turn. Rows are the truth: every step is found again
// by a sweep, so that any process may die at any line. No machine is asked for
// before its name is committed, none is forgotten before its provider confirms
// that it is gone, and a meter runs from ready to the DELETE and never outside.
package pod

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/dns"
	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/mail"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/offer"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/seal"
	"homeport.dev/homeport/internal/sshkey"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/volume"
	"homeport.dev/homeport/internal/wallet"
)

// Faults of pods.
var (
	// ErrNotFound occurs when there is no such pod in the team.
	ErrNotFound = fault.New(fault.NotFound, "pod_not_found", "There is no such pod.")
	// ErrNotYours occurs when a member deletes a pod that somebody else created.
	ErrNotYours = fault.New(fault.Forbidden, "pod_not_yours", "Only the pod's creator or an admin can delete it.")
	// ErrSwitchingOff occurs when a pod is deleted that is switching off already.
	ErrSwitchingOff = fault.New(fault.Conflict, "pod_switching_off", "The pod is switching off already.")
	// ErrRunning occurs when a team that has pods is to be deleted.
	ErrRunning = fault.New(fault.Conflict, "pods_running", "Delete the running pods first.")
	// ErrGPULimit occurs when the team would hold more GPUs than its plan allows.
	ErrGPULimit = fault.New(fault.TooMany, "gpu_limit", "Your plan's limit of concurrent GPUs is reached.")
	// ErrSetups occurs when a team ended too many set-ups before they were ready.
	ErrSetups = fault.New(fault.TooMany, "setup_limit", "Too many pods were deleted today before they were ready. Please try again tomorrow.")
	// ErrRelaunched occurs when another pod is to take the place of one that lives, or whose place is taken.
	ErrRelaunched = fault.New(fault.Conflict, "pod_relaunched", "This pod runs, or was started again already.")
	// ErrNoPort occurs when every SSH port of the configured range is taken.
	ErrNoPort = fault.New(fault.Unavailable, "no_ssh_port", "No SSH port is free at the moment. Please try again later.")
	// ErrAgentToken occurs when an agent's token is not one of an open instance.
	ErrAgentToken = fault.New(fault.Unauthenticated, "agent_token", "This token is not valid.")
	// ErrFenced occurs when an agent's attachment is over: its pod has ended or uses another machine.
	ErrFenced = fault.New(fault.Conflict, agentapi.CodeFenced, "This attachment is over.")
)

// A Pod is what a team rents and sees.
type Pod struct {
	ID                  uuid.UUID
	TeamID              uuid.UUID
	CreatedBy           uuid.UUID
	VolumeID            uuid.UUID
	VolumeEpoch         int64
	SSHKeyID            uuid.UUID `db:"ssh_key_id"`
	Status              Status
	StatusReason        string
	StatusDetail        string
	Progress            int // percent
	Offer               provider.Offer
	Adapter             string // key of Deps.Adapters
	Provider            string // the cloud's name as users see it
	Country             string
	GPUType             string     `db:"gpu_type"`
	GPUCount            int        `db:"gpu_count"`
	Rate                money.Rate `db:"rate_usd_micro_per_hour"`
	MaxRate             money.Rate `db:"max_rate_usd_micro_per_hour"`
	ListRate            money.Rate `db:"list_rate_usd_micro_per_hour"`
	SSHPort             int        `db:"ssh_port"`
	SSHHost             string     `db:"ssh_host"`
	HostKeySealed       []byte
	HostKeyFingerprint  string
	ProbeKeySealed      []byte
	ProbeKeyLine        string
	Attempts            int
	CreatedAt           time.Time  // business time, as all _at
	ReadyAt             *time.Time // the meter's start
	DeleteRequestedAt   *time.Time
	StoppedAt           *time.Time // the meter's end; nil again while a last sync is charged
	SyncedAt            *time.Time
	EndedAt             *time.Time
	FinalPaidFromAt     *time.Time // the last sync is charged from then on; nil: it is not
	StatusWallAt        time.Time  // wall time, as all _wall_at
	ProgressWallAt      time.Time
	MovedWallAt         *time.Time // the last progress itself, whatever excuses a stall
	RestoredWallAt      *time.Time // the agent reported /workspace whole
	FinalWallAt         *time.Time // the last sync is committed and published
	EndedWallAt         *time.Time
	NextWallAt          *time.Time // when the reconciler looks again
	EndedByUserEarly    bool
	AutoRelaunch        bool       // when its machine is lost it is started again on another cloud
	Relaunches          int        // how often that was done in its line
	RelaunchOf          *uuid.UUID // the pod whose place it took
	RelaunchedAs        *uuid.UUID // the pod that took its place
	RelaunchUntilWallAt *time.Time // set: it is being started again
}

// InstanceState is what we know of a machine.
type InstanceState string

// The states of design decision 4. Every state but Gone is open: its name is ours.
const (
	Intent      InstanceState = "intent"      // the name is committed, the call may be under way
	Ambiguous   InstanceState = "ambiguous"   // the call's end is not known
	Running     InstanceState = "running"     // the provider has it
	Terminating InstanceState = "terminating" // to be ended, retried for ever
	Gone        InstanceState = "gone"        // the provider confirmed the end
)

// An Instance is one machine at one provider.
type Instance struct {
	ID              uuid.UUID
	PodID           uuid.UUID
	Attempt         int
	Name            string
	Provider        string // key of Deps.Adapters: the account it is rented from
	Offer           provider.Offer
	State           InstanceState
	NodeID          uuid.UUID // the node that made the call
	TokenHash       []byte
	Ref             string
	Host            string
	SSHPort         int `db:"ssh_port"`
	Reason          string
	CreatedWallAt   time.Time
	StateWallAt     time.Time
	AgentSeenWallAt *time.Time
	ProbedWallAt    *time.Time
	GoneSeenWallAt  *time.Time
	Tries           int
	NextWallAt      *time.Time
	Outcome         Outcome // for its cloud's score; empty: it is not known yet
	OutcomeWallAt   *time.Time
	CheckAsked      bool       // its agent looks it over before its pod is ready
	CheckedWallAt   *time.Time // it did, and all is as it was sold
}

// unclear reports whether the end of the call that made the machine is not recorded.
func (in *Instance) unclear() bool { return in.State == Intent || in.State == Ambiguous }

// A ReconcileJob nudges the reconciler to look at one pod now.
type ReconcileJob struct {
	PodID uuid.UUID `json:"pod_id"`
}

// Kind names the job.
func (ReconcileJob) Kind() string { return "pod.reconcile" }

// A TerminateJob nudges the clean-up of one instance.
type TerminateJob struct {
	InstanceID uuid.UUID `json:"instance_id"`
}

// Kind names the job.
func (TerminateJob) Kind() string { return "pod.terminate" }

// Limits are the numbers an operator may change; the zero value of each means
// its default (server rules 6, 7, 10, 12, 14).
type Limits struct {
	HobbyGPUs, ProGPUs           int           // 16, 64
	FreeSetups                   int           // 5 per team and UTC day
	MinRunway                    time.Duration // 0
	PendingFor                   time.Duration // 5 min
	StartingFor                  time.Duration // 20 min, or as long as the cloud needs
	MountingStall                time.Duration // 30 min without progress
	FinalStall                   time.Duration // 15 min without progress
	FreeFinals                   int           // 10 last syncs per team and UTC day
	FinalFree, FinalPaid         time.Duration // 10 min of a last sync; at most 60 min after it
	PortFirst, PortLast          int           // 20000 to 29999
	LaunchFor                    time.Duration // 60 s, a provider's answer to Launch
	LocateFor                    time.Duration // 3 min, how long a machine may appear late
	Quiet                        time.Duration // 90 s without a heartbeat
	QuietLong                    time.Duration // 10 min without a heartbeat
	GoneTwice                    time.Duration // 30 s between two reads that say gone
	ReaperArms                   time.Duration // 10 min after a start
	OrphanTwice                  time.Duration // 2 min between two sightings
	TerminateMin, TerminateMax   time.Duration // 1 s to 5 min between tries
	HeartbeatBlind, ListedForEnd time.Duration // 10 min after a start; 15 min in the list
	Preflight                    Preflight
	Relaunches                   int           // 3, of one lost pod and those in its place
	RelaunchFor                  time.Duration // 15 min, how long another cloud is looked for
}

func (l Limits) withDefaults() Limits {
	count := func(v *int, def int) {
		if *v == 0 {
			*v = def
		}
	}
	span := func(v *time.Duration, def time.Duration) {
		if *v == 0 {
			*v = def
		}
	}
	count(&l.HobbyGPUs, 16)
	count(&l.ProGPUs, 64)
	count(&l.FreeSetups, 5)
	count(&l.FreeFinals, 10)
	count(&l.Relaunches, 3)
	count(&l.PortFirst, 20000)
	count(&l.PortLast, 29999)
	span(&l.PendingFor, 5*time.Minute)
	span(&l.StartingFor, 20*time.Minute)
	span(&l.MountingStall, 30*time.Minute)
	span(&l.FinalStall, 15*time.Minute)
	span(&l.FinalFree, 10*time.Minute)
	span(&l.FinalPaid, time.Hour)
	span(&l.LaunchFor, time.Minute)
	span(&l.LocateFor, 3*time.Minute)
	span(&l.Quiet, 90*time.Second)
	span(&l.QuietLong, 10*time.Minute)
	span(&l.GoneTwice, 30*time.Second)
	span(&l.ReaperArms, 10*time.Minute)
	span(&l.OrphanTwice, 2*time.Minute)
	span(&l.TerminateMin, time.Second)
	span(&l.TerminateMax, 5*time.Minute)
	span(&l.HeartbeatBlind, 10*time.Minute)
	span(&l.ListedForEnd, 15*time.Minute)
	span(&l.RelaunchFor, 15*time.Minute)
	l.Preflight = l.Preflight.withDefaults()
	return l
}

// Deps is what the service stands on.
type Deps struct {
	Pool     *pgxpool.Pool
	Clock    *clock.Clock
	Jobs     job.Queue
	Box      *seal.Box
	Logger   *slog.Logger
	Wallet   *wallet.Service
	Volumes  *volume.Service
	Offers   *offer.Service
	Keys     *sshkey.Service
	Teams    *team.Service
	Mail     mail.Sender
	Adapters map[string]provider.Adapter
	DNS      dns.Names
	Host     string // HOMEPORT_POD_HOST
	AgentURL string // where agents outside sandboxes dial, and letters lead: the public address
	Limits   Limits
	// Listen follows a notification channel of the database; its payloads may
	// be lost. Nil: this node alone is woken at once, others within a poll.
	Listen func(channel string) (payloads <-chan string, cancel func())
	// Notify sends a payload on such a channel, with the transaction.
	Notify func(ctx context.Context, tx pgx.Tx, channel, payload string) error
}

// A Service rents pods. See New.
type Service struct {
	Deps
	node    uuid.UUID // this process
	started time.Time // wall time
	env4    string
	orders  *waiters
	ears    ears
}

// ptr returns a pointer to v, for nullable columns.
func ptr[T any](v T) *T { return &v }
