// Package agentapi holds the messages between the control plane and the agent
// in a pod. The agent calls, over HTTP with JSON bodies, always with its
// instance's token as bearer; the control plane only answers. In a sandbox pod
// the calls go through a unix socket, elsewhere over HTTPS. The agent's word
// is never proof: what is billed, limited or fenced is derived on the server.
package agentapi

import "time"

// Paths of the agent API.
const (
	PathHello    = "/agent/v1/hello"    // POST Hello -> Welcome
	PathChecked  = "/agent/v1/checked"  // POST Checked -> {}
	PathSpeed    = "/agent/v1/speed"    // GET ?bytes=N -> N bytes that do not compress
	PathLease    = "/agent/v1/lease"    // POST Lease -> Orders
	PathSign     = "/agent/v1/sign"     // POST Sign -> Grants
	PathCommit   = "/agent/v1/commit"   // POST Commit -> Committed
	PathRestored = "/agent/v1/restored" // POST Restored -> {}
	PathFailed   = "/agent/v1/failed"   // POST Failed -> {}
	PathObject   = "/agent/v1/o/"       // GET and PUT of the folder store's grants
	PathStore    = "/agent/v1/store"    // GET with Upgrade: the bytes to and from the object store
)

// StoreProtocol is what a GET of PathStore upgrades to: from the answer on the
// connection is one to the object store, for pods without a network.
const StoreProtocol = "homeport-store"

// Limits of the agent API.
const (
	LeaseEvery    = 20 * time.Second // at least one Lease call in this time
	MaxSignOps    = 256              // operations in one Sign call
	MaxObjectSize = 64 << 20         // bytes of one object
	MaxSnapshot   = 1 << 20          // bytes of a snapshot object in a Commit
	MaxSpeed      = 64 << 20         // bytes of one answer of PathSpeed
	LandingNotice = 15 * time.Minute // before its end a pod tells who is logged in
)

// Hello is the first call of an agent, and the first after it restarted.
type Hello struct {
	Version   string `json:"version"`
	Arch      string `json:"arch"`      // GOARCH
	DiskFree  int64  `json:"disk_free"` // bytes free where /workspace will be
	Restarted bool   `json:"restarted"` // the agent found state of an earlier run
	Checks    bool   `json:"checks"`    // it looks its machine over when the Welcome says so
}

// Welcome tells the agent what it is to be.
type Welcome struct {
	PodID          string      `json:"pod_id"`
	Hostname       string      `json:"hostname"`        // first segment of the pod's id
	HostKey        string      `json:"host_key"`        // PEM, OpenSSH form; the pod's, kept through relaunches
	AuthorizedKeys []string    `json:"authorized_keys"` // one line each; may log in as root
	ProbeKey       string      `json:"probe_key"`       // public key line; may authenticate, gets no session
	Notice         string      `json:"notice"`          // message of the day
	Phase          Phase       `json:"phase"`           // where the server believes the pod to be
	Volume         VolumeGrant `json:"volume"`
	Check          *Check      `json:"check,omitempty"` // to be answered by Checked before anything is restored; nil: not asked for
}

// Check says how a machine is to be looked over. Each measurement ends after
// Seconds, with what was reached by then.
type Check struct {
	DiskBytes int64 `json:"disk_bytes"` // to write where /workspace is; 0 = do not
	NetBytes  int64 `json:"net_bytes"`  // to read from PathSpeed; 0 = do not
	Seconds   int   `json:"seconds"`
}

// Checked is what an agent found of its machine.
type Checked struct {
	Epoch     int64  `json:"epoch"`
	GPUs      []GPU  `json:"gpus"`
	GPUError  string `json:"gpu_error"`  // why they could not be listed
	Driver    string `json:"driver"`     // version
	CUDA      bool   `json:"cuda"`       // CUDA was tried
	CUDAError string `json:"cuda_error"` // why it does not start; "" = it does
	DiskRate  int64  `json:"disk_rate"`  // bytes per second, 0 = not measured
	NetRate   int64  `json:"net_rate"`
}

// A GPU as its driver names it.
type GPU struct {
	Name      string `json:"name"`
	MemoryMiB int64  `json:"memory_mib"`
}

// VolumeGrant is all the agent needs to restore and sync the volume.
type VolumeGrant struct {
	ID         string    `json:"id"`
	Epoch      int64     `json:"epoch"`       // of this attachment; stale after the next one
	Key        []byte    `json:"key"`         // restic master key, JSON as in a decrypted keys/ file
	ChunkerKey []byte    `json:"chunker_key"` // 32 bytes that key the chunker
	Head       *Head     `json:"head"`        // nil: never committed, /workspace starts empty
	Indexes    []Object  `json:"indexes"`     // all committed index objects
	SizeBytes  int64     `json:"size_bytes"`  // of the head, as billed
	QuotaBytes int64     `json:"quota_bytes"`
	Resume     []Object  `json:"resume"` // packs that this epoch uploaded and did not commit
	CreatedAt  time.Time `json:"created_at"`
}

// Head is a volume's committed state.
type Head struct {
	Snapshot string    `json:"snapshot"` // hex id of the snapshot object
	Tree     string    `json:"tree"`     // hex id of its root tree
	Seq      int64     `json:"seq"`      // counts commits from 1
	Time     time.Time `json:"time"`     // the snapshot's own time; the next one's is later
}

// Kind says what an object of a repository holds.
type Kind string

// The kinds of objects an agent may read or write. It gets no grant for
// snapshots, keys or config.
const (
	KindData  Kind = "data"  // pack of file blobs
	KindTree  Kind = "tree"  // pack of tree blobs
	KindIndex Kind = "index" // index object
)

// Object names an immutable object by the SHA-256 of its bytes.
type Object struct {
	ID   string `json:"id"` // hex
	Kind Kind   `json:"kind"`
	Size int64  `json:"size"` // bytes
}

// Phase is what an agent is doing.
type Phase string

// The phases, in order.
const (
	PhaseMounting Phase = "mounting" // restoring /workspace
	PhaseServing  Phase = "serving"  // restored, SSH open, background sync runs
	PhaseFinal    Phase = "final"    // user processes stopped, last sync runs
	PhaseDone     Phase = "done"     // last sync committed, or nothing to sync
)

// Lease is the heartbeat. With WaitSeconds above 0 the server holds the answer
// until the orders differ from Seen, at most that long.
type Lease struct {
	Phase       Phase    `json:"phase"`
	Seen        string   `json:"seen"`         // Orders.Version of the last answer
	WaitSeconds int      `json:"wait_seconds"` // 0 to 20
	Progress    Progress `json:"progress"`
	DirtyBytes  int64    `json:"dirty_bytes"` // known to differ from the head
	Note        string   `json:"note"`        // last trouble, for the card; at most 200 bytes
}

// Progress of a restore or of a final sync.
type Progress struct {
	BytesDone  int64 `json:"bytes_done"`
	BytesTotal int64 `json:"bytes_total"`
	FilesDone  int64 `json:"files_done"`
	FilesTotal int64 `json:"files_total"`
	ETASeconds int64 `json:"eta_seconds"` // 0 = not known
}

// Command is what the server wants now. Commands repeat until obeyed.
type Command string

// The commands.
const (
	CommandNone  Command = ""
	CommandSync  Command = "sync"  // sync now, do not wait for the interval
	CommandFinal Command = "final" // stop SSH and user processes, sync, report PhaseDone
	CommandStop  Command = "stop"  // end at once, without syncing
)

// Orders answer a Lease.
type Orders struct {
	Version        string   `json:"version"` // changes with the content
	Command        Command  `json:"command"`
	AuthorizedKeys []string `json:"authorized_keys"`
	Notice         string   `json:"notice"`
	// Landing is the pod's end, once it is near; nil: none is known.
	Landing *Landing `json:"landing,omitempty"`
}

// A Landing is the instant at which a pod is switched off for want of money. It
// may move, or be called off by a payment.
type Landing struct {
	At     time.Time     `json:"at"` // wall time, to the second
	Reason LandingReason `json:"reason"`
	URL    string        `json:"url"` // where a payment is made
}

// A LandingReason is why a pod is switched off.
type LandingReason string

// The reasons.
const (
	LandsOnBalance LandingReason = "balance"     // the wallet is empty then
	LandsOnLimit   LandingReason = "spend_limit" // the month's limit was used up
)

// Sign asks for grants. All operations are of the token's volume and epoch.
type Sign struct {
	Epoch int64 `json:"epoch"`
	Ops   []Op  `json:"ops"`
}

// Op is one object to move.
type Op struct {
	Put    bool   `json:"put"`
	Object Object `json:"object"` // for reads the size may be 0
}

// Grants answer Sign, in the order of its operations.
type Grants struct {
	Grants    []Grant   `json:"grants"`
	ExpiresAt time.Time `json:"expires_at"`
}

// Grant is one HTTP request the agent may make. A URL that begins with "/" is
// on the control plane itself and needs no bearer.
type Grant struct {
	Method string            `json:"method"`
	URL    string            `json:"url"`
	Header map[string]string `json:"header"`
}

// Commit asks to move the volume's head. A repeated commit of the same
// snapshot answers as the first did.
type Commit struct {
	Epoch      int64    `json:"epoch"`
	Parent     string   `json:"parent"`      // snapshot id of the head it builds on, "" for none
	SnapshotID string   `json:"snapshot_id"` // hex SHA-256 of Snapshot
	Snapshot   []byte   `json:"snapshot"`    // the stored (encrypted) bytes of the snapshot object
	Tree       string   `json:"tree"`
	Final      bool     `json:"final"`    // user processes are stopped and nothing differs any more
	Objects    []Object `json:"objects"`  // new packs and index objects
	Skipped    int64    `json:"skipped"`  // entries that could not be read
	Unstable   int64    `json:"unstable"` // files that changed while being read
}

// Committed answers Commit.
type Committed struct {
	Head      Head  `json:"head"`
	SizeBytes int64 `json:"size_bytes"`
}

// Restored says that /workspace is whole: the gate of every commit.
type Restored struct {
	Epoch int64 `json:"epoch"`
}

// Failed says that the agent cannot go on before the restore finished.
type Failed struct {
	Epoch  int64  `json:"epoch"`
	Code   string `json:"code"`   // "disk_full", "damaged", "internal"
	Detail string `json:"detail"` // for the operator
}

// Problem is the body of a refusal (RFC 9457 members the agent reads).
type Problem struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// Codes the agent acts on.
const (
	CodeFenced = "fenced"         // 409: the attachment is over; stop syncing for good
	CodeQuota  = "quota_exceeded" // 409: no more uploads until something is deleted
	CodeParent = "parent_moved"   // 409: the head is not Parent; say Hello again
)
