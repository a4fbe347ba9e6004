package apitype

import "time"

// OperatorOverview is how this Homeport does, from what it has written down; no
// cloud is asked for it.
type OperatorOverview struct {
	AsOf      time.Time          `json:"as_of"`
	Providers []OperatorProvider `json:"providers" nullable:"false" doc:"By name; also one that is not for sale, whose machines are looked after."`
	Instances OperatorInstances  `json:"instances"`
	Jobs      OperatorJobs       `json:"jobs"`
	Ledger    *OperatorLedger    `json:"ledger,omitempty" doc:"The last nightly check of the books; absent before the first."`
	Clearing  OperatorClearing   `json:"clearing"`
	Volumes   OperatorVolumes    `json:"volumes"`
}

// OperatorProvider is one cloud.
type OperatorProvider struct {
	Provider     string           `json:"provider" doc:"Name of the adapter: the account."`
	Sells        bool             `json:"sells" doc:"Its offers are for sale here."`
	Health       string           `json:"health" enum:"works,trial,broken,no_funds,stale,silent,off" doc:"stale: its offers are hidden for want of a good catalogue; silent: it never had one; off: it does not sell."`
	Breaker      OperatorBreaker  `json:"breaker"`
	Trouble      string           `json:"trouble" doc:"The last failure, one line; empty: none."`
	AskedAt      *time.Time       `json:"asked_at,omitempty" doc:"When its catalogue was asked for."`
	ListedAt     *time.Time       `json:"listed_at,omitempty" doc:"Its last good catalogue."`
	Offers       int              `json:"offers" doc:"In that catalogue."`
	Score        int              `json:"score" doc:"0 to 100, of its machines of 7 days; 100 while nothing is known."`
	Machines     OperatorOutcomes `json:"machines" doc:"How those of 7 days did."`
	Instances    OperatorStates   `json:"instances" doc:"Open ones now."`
	Orphans      int              `json:"orphans"`
	BurnPerHour  Decimal          `json:"burn_per_hour" doc:"USD that its machines cost us now."`
	Balance      *OperatorBalance `json:"balance,omitempty" doc:"What is left of our money there; absent where its API does not say so, or was not asked yet."`
	BalanceByAPI bool             `json:"balance_by_api" doc:"Its API says what is left."`
}

// OperatorBreaker is whether a cloud is left alone.
type OperatorBreaker struct {
	State    string     `json:"state" enum:"closed,half,open"`
	Reason   string     `json:"reason" doc:"failures or funds; empty while closed."`
	OpenedAt *time.Time `json:"opened_at,omitempty"`
	ProbeAt  *time.Time `json:"probe_at,omitempty" doc:"When it is tried again."`
}

// OperatorOutcomes count machines by how they did.
type OperatorOutcomes struct {
	Ready   int `json:"ready"`
	Slow    int `json:"slow"`
	Failed  int `json:"failed"`
	BadHost int `json:"bad_host"`
	Lost    int `json:"lost"`
}

// OperatorStates count open instances.
type OperatorStates struct {
	Intent      int `json:"intent"`
	Ambiguous   int `json:"ambiguous"`
	Running     int `json:"running"`
	Terminating int `json:"terminating"`
}

// OperatorBalance is what is left of our money at a cloud.
type OperatorBalance struct {
	Amount    Decimal    `json:"amount" doc:"USD; below zero: a debt. 0 while read_at is absent."`
	ReadAt    *time.Time `json:"read_at,omitempty" doc:"When the cloud said so."`
	HoursLeft *int64     `json:"hours_left,omitempty" doc:"Whole hours that it pays for; absent while nothing costs."`
	Low       bool       `json:"low" doc:"Less than 24 hours of what its machines cost, or nothing."`
	Trouble   string     `json:"trouble" doc:"Why the last question was not answered; empty: it was."`
}

// OperatorInstances are the machines against the pods.
type OperatorInstances struct {
	Pods            int                `json:"pods" doc:"Pods that are not deleted."`
	Open            OperatorStates     `json:"open"`
	TerminatingLong int                `json:"terminating_long" doc:"For more than 15 minutes."`
	AmbiguousLong   int                `json:"ambiguous_long" doc:"For more than 5 minutes."`
	LastSyncLong    int                `json:"last_sync_long" doc:"Running ones whose pod is in its last sync for more than 24 hours."`
	WithoutPod      int                `json:"without_pod" doc:"Machines that serve no pod any more, and cost."`
	Orphans         int                `json:"orphans" doc:"Machines with our mark that no open instance owns."`
	Troubled        []OperatorTroubled `json:"troubled" nullable:"false" doc:"Ambiguous ones, those that are terminating for more than 15 minutes, and those whose pod is in its last sync for more than 24 hours (running), the oldest first, 100 at most."`
	TroubledLeftOut int                `json:"troubled_left_out"`
	OrphanList      []OperatorOrphan   `json:"orphan_list" nullable:"false" doc:"The oldest first, 100 at most."`
	OrphansLeftOut  int                `json:"orphans_left_out"`
	Reaper          OperatorReaper     `json:"reaper"`
}

// OperatorTroubled is an instance to look at.
type OperatorTroubled struct {
	Name        string     `json:"name"`
	Provider    string     `json:"provider"`
	Cloud       string     `json:"cloud" doc:"As users see it."`
	GPUType     string     `json:"gpu_type"`
	GPUCount    int        `json:"gpu_count"`
	State       string     `json:"state" enum:"ambiguous,running,terminating"`
	Since       time.Time  `json:"since" doc:"In this state; of a running one: when its last sync began."`
	Tries       int        `json:"tries"`
	Reason      string     `json:"reason"`
	NextAt      *time.Time `json:"next_at,omitempty" doc:"When it is tried again."`
	PodID       string     `json:"pod_id"`
	PodStatus   string     `json:"pod_status"`
	BurnPerHour Decimal    `json:"burn_per_hour" doc:"USD."`
}

// OperatorOrphan is a machine that nobody owns.
type OperatorOrphan struct {
	Provider    string    `json:"provider"`
	Ref         string    `json:"ref" doc:"The cloud's id."`
	Name        string    `json:"name"`
	FirstSeenAt time.Time `json:"first_seen_at"`
}

// OperatorReaper says whether orphans are ended.
type OperatorReaper struct {
	Armed      bool       `json:"armed" doc:"False: the database was restored, and nobody said 'homeport reaper arm' yet."`
	RestoredAt *time.Time `json:"restored_at,omitempty"`
}

// OperatorJobs are the kinds of jobs that fail.
type OperatorJobs struct {
	Retrying     int64         `json:"retrying" doc:"Failed, and will be tried again."`
	GivenUp      int64         `json:"given_up" doc:"In the last 7 days."`
	GivenUpDay   int64         `json:"given_up_day" doc:"In the last 24 hours."`
	Kinds        []OperatorJob `json:"kinds" nullable:"false" doc:"The worst first, 50 at most."`
	KindsLeftOut int           `json:"kinds_left_out"`
}

// OperatorJob is one kind of job.
type OperatorJob struct {
	Kind       string     `json:"kind"`
	Retrying   int64      `json:"retrying"`
	GivenUp    int64      `json:"given_up"`
	GivenUpDay int64      `json:"given_up_day"`
	LastError  string     `json:"last_error" doc:"One line of at most 300 characters."`
	LastAt     *time.Time `json:"last_at,omitempty"`
	NextAt     *time.Time `json:"next_at,omitempty"`
}

// OperatorLedger is what the last nightly check of the books found.
type OperatorLedger struct {
	CheckedAt time.Time `json:"checked_at"`
	Wallets   int64     `json:"wallets"`
	Segments  int64     `json:"segments"`
	Transfers int64     `json:"transfers"`
	Problems  int64     `json:"problems" doc:"Rows that are wrong."`
	Imbalance Decimal   `json:"imbalance" doc:"USD that are not where the transfers say."`
	OK        bool      `json:"ok"`
	Late      bool      `json:"late" doc:"Older than 26 hours."`
}

// OperatorClearing is what the payment processor's book and ours differ in.
type OperatorClearing struct {
	Problems     int     `json:"problems"`
	Acknowledged int     `json:"acknowledged" doc:"Differences that an operator knows of; they are not among the problems."`
	Difference   Decimal `json:"difference" doc:"USD."`
}

// OperatorVolumes is what the object store does not do as it should.
type OperatorVolumes struct {
	DamagedObjects int64 `json:"damaged_objects"`
	GarbageBytes   int64 `json:"garbage_bytes" doc:"That wait to be deleted."`
}

// OperatorMargin is what users paid for pods against what machines cost.
type OperatorMargin struct {
	Paid           Decimal `json:"paid" doc:"USD, after refunds, on the days that the pods ran."`
	Upstream       Decimal `json:"upstream" doc:"USD, of all machines, also of failed starts."`
	Margin         Decimal `json:"margin" doc:"USD: paid less upstream."`
	Negative       bool    `json:"negative"`
	PaidSeconds    int64   `json:"paid_seconds" doc:"Metered time of pods."`
	MachineSeconds int64   `json:"machine_seconds" doc:"Time that there were machines."`
}

// OperatorMargins are those of some UTC days.
type OperatorMargins struct {
	AsOf           time.Time                   `json:"as_of"`
	From           string                      `json:"from" doc:"First day, as 2027-03-14."`
	To             string                      `json:"to" doc:"Last day: today so far."`
	Days           int                         `json:"days"`
	Total          OperatorMargin              `json:"total"`
	PerDay         []OperatorDayMargin         `json:"per_day" nullable:"false" doc:"Each day, the oldest first."`
	PerProvider    []OperatorProviderMargin    `json:"per_provider" nullable:"false" doc:"The lowest margin first."`
	PerProviderDay []OperatorProviderDayMargin `json:"per_provider_day" nullable:"false" doc:"Where there is something, by day and provider."`
	PerOffer       []OperatorOfferMargin       `json:"per_offer" nullable:"false" doc:"The lowest margin first, 200 at most."`
	OffersLeftOut  int                         `json:"offers_left_out" doc:"Their money is in the sums."`
}

// OperatorDayMargin is the margin of one day.
type OperatorDayMargin struct {
	Day string `json:"day"`
	OperatorMargin
}

// OperatorProviderMargin is the margin of one cloud.
type OperatorProviderMargin struct {
	Provider string `json:"provider"`
	OperatorMargin
}

// OperatorProviderDayMargin is the margin of one cloud on one day.
type OperatorProviderDayMargin struct {
	Day      string `json:"day"`
	Provider string `json:"provider"`
	OperatorMargin
}

// OperatorOfferMargin is the margin of one thing that is sold.
type OperatorOfferMargin struct {
	Provider string `json:"provider"`
	Cloud    string `json:"cloud" doc:"As users see it."`
	GPUType  string `json:"gpu_type"`
	GPUCount int    `json:"gpu_count"`
	OperatorMargin
}
