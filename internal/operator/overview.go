package operator

import (
	"context"
	"maps"
	"slices"
	"time"

	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/offer"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/pod"
	"homeport.dev/homeport/internal/wallet"
)

const (
	maxKinds    = 50             // of jobs that fail
	checkLate   = 26 * time.Hour // the books are looked at each night
	enoughHours = 24             // that a balance at a cloud shall last
)

// Health is how a cloud does, in one word.
type Health string

// The words.
const (
	Works   Health = "works"
	Trial   Health = "trial"    // on sale again, but one failure takes it off
	Broken  Health = "broken"   // off sale: its calls fail
	NoFunds Health = "no_funds" // off sale: our account there is empty
	Stale   Health = "stale"    // no good catalogue for so long that its offers are hidden
	Silent  Health = "silent"   // never a good catalogue
	Off     Health = "off"      // not for sale; its machines are looked after
)

// A Provider is one cloud. Instants are wall time.
type Provider struct {
	Name    string
	Sells   bool
	Health  Health
	Seen    offer.Health
	Asked   bool // for its list
	Score   pod.Score
	Fleet   pod.Fleet
	Tells   bool           // its API says what is left of our money there
	Balance *offer.Balance // nil: it was not asked yet
	Hours   *int64         // that the balance lasts; nil: not known, or nothing costs
	Low     bool           // the balance lasts for less than a day
}

// A FailingJob is one kind of job of which some fail.
type FailingJob = job.Failing

// Jobs are the kinds of jobs that fail.
type Jobs struct {
	Retrying, GivenUp, GivenUpDay int64
	Kinds                         []FailingJob // the worst first, 50 at most
	LeftOut                       int
}

// An Overview is how everything does. Instants are wall time, but for those of
// the books.
type Overview struct {
	AsOf      time.Time
	Providers []Provider // by name
	Pods      int        // that are not deleted
	Fleet     pod.Fleet  // of all clouds
	Troubled  []pod.Troubled
	Orphans   []pod.Orphan
	Restored  *time.Time // since when orphans are not ended; nil: they are
	Jobs      Jobs
	Check     *wallet.Check // of the books; nil: none yet
	CheckOK   bool
	CheckLate bool
	CheckAge  time.Duration

	ClearingDifference money.USD
	ClearingProblems   int
	ClearingKnown      int // acknowledged
	Damaged, Garbage   int64
}

// Overview reads it all.
func (s *Service) Overview(ctx context.Context) (*Overview, error) {
	o := &Overview{AsOf: s.Clock.Wall()}
	for _, read := range []func(context.Context, *Overview) error{s.readProviders, s.readMachines, s.readJobs, s.readBooks} {
		if err := read(ctx, o); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// readProviders looks at each cloud that is set up, or has a machine.
func (s *Service) readProviders(ctx context.Context, o *Overview) error {
	health, err := s.Offers.Health(ctx)
	if err != nil {
		return err
	}
	scores, err := s.Pods.Scores(ctx)
	if err != nil {
		return err
	}
	fleets, err := s.Pods.Fleets(ctx)
	if err != nil {
		return err
	}
	balances, err := s.Offers.Balances(ctx)
	if err != nil {
		return err
	}
	all := map[string]*Provider{}
	at := func(name string) *Provider {
		if all[name] == nil {
			_, sells := s.Offers.Adapters[name]
			all[name] = &Provider{Name: name, Sells: sells, Tells: s.Offers.TellsBalance(name), Seen: offer.Health{State: offer.Closed}}
		}
		return all[name]
	}
	for name := range s.Offers.Adapters {
		at(name)
	}
	for name := range s.Pods.Adapters {
		at(name)
	}
	for _, h := range health {
		p := at(h.Adapter)
		p.Seen, p.Asked = h, true
	}
	for _, f := range fleets {
		at(f.Provider).Fleet = f
		o.Fleet = add(o.Fleet, f)
	}
	for _, sc := range scores {
		if all[sc.Provider] != nil {
			all[sc.Provider].Score = sc
		}
	}
	for _, b := range balances {
		if p := all[b.Adapter]; p != nil && p.Tells {
			p.Balance = &b
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		p := all[name]
		p.Health = p.health(o.AsOf)
		p.lasts()
		o.Providers = append(o.Providers, *p)
	}
	return nil
}

// health says in one word how a cloud does.
func (p *Provider) health(now time.Time) Health {
	switch {
	case !p.Sells:
		return Off
	case p.Seen.State == offer.Open && p.Seen.Reason == offer.BrokenByFunds:
		return NoFunds
	case p.Seen.State == offer.Open:
		return Broken
	case p.Seen.ListedAt == nil:
		return Silent
	case p.Stale(now):
		return Stale
	case p.Seen.State == offer.Half:
		return Trial
	}
	return Works
}

// Stale reports whether the cloud's offers are hidden at an instant, for want of
// a good catalogue.
func (p *Provider) Stale(now time.Time) bool {
	return p.Sells && (p.Seen.ListedAt == nil || now.Sub(*p.Seen.ListedAt) >= offer.VisibleFor)
}

// lasts says for how long the balance pays for the machines that there are.
func (p *Provider) lasts() {
	if p.Balance == nil || p.Balance.Amount == nil {
		return
	}
	left, burn := int64(*p.Balance.Amount), int64(p.Fleet.Burn)
	p.Low = left <= 0
	if burn > 0 {
		hours := max(left, 0) / burn
		p.Hours, p.Low = &hours, p.Low || hours < enoughHours
	}
}

func add(a, b pod.Fleet) pod.Fleet {
	return pod.Fleet{
		Intent: a.Intent + b.Intent, Ambiguous: a.Ambiguous + b.Ambiguous, Running: a.Running + b.Running, Terminating: a.Terminating + b.Terminating,
		TerminatingLong: a.TerminatingLong + b.TerminatingLong, AmbiguousLong: a.AmbiguousLong + b.AmbiguousLong,
		LastSyncLong: a.LastSyncLong + b.LastSyncLong,
		WithoutPod:   a.WithoutPod + b.WithoutPod, Burn: a.Burn + b.Burn, Orphans: a.Orphans + b.Orphans,
	}
}

func (s *Service) readMachines(ctx context.Context, o *Overview) error {
	counts, err := s.Pods.CountByStatus(ctx)
	if err != nil {
		return err
	}
	for _, n := range counts {
		o.Pods += n
	}
	if o.Troubled, err = s.Pods.Troubled(ctx); err != nil {
		return err
	}
	if o.Orphans, err = s.Pods.Orphans(ctx); err != nil {
		return err
	}
	o.Restored, err = s.Pods.RestoredAt(ctx)
	return err
}

func (s *Service) readJobs(ctx context.Context, o *Overview) error {
	kinds, err := s.FailingJobs(ctx, o.AsOf)
	if err != nil {
		return err
	}
	for _, k := range kinds {
		o.Jobs.Retrying, o.Jobs.GivenUp, o.Jobs.GivenUpDay = o.Jobs.Retrying+k.Retrying, o.Jobs.GivenUp+k.GivenUp, o.Jobs.GivenUpDay+k.GivenUpDay
	}
	o.Jobs.LeftOut = max(0, len(kinds)-maxKinds)
	o.Jobs.Kinds = kinds[:min(len(kinds), maxKinds)]
	return nil
}

func (s *Service) readBooks(ctx context.Context, o *Overview) error {
	last, ok, err := s.Wallet.LastCheck(ctx)
	if err != nil {
		return err
	}
	if ok {
		o.Check, o.CheckOK = &last, last.Problems == 0 && last.Imbalance == 0
		o.CheckAge = s.Clock.Now().Sub(last.At)
		o.CheckLate = o.CheckAge > checkLate
	}
	open, err := s.Payments.ClearingProblems(ctx)
	if err != nil {
		return err
	}
	o.ClearingDifference, o.ClearingProblems = payment.Reconciliation{Problems: open}.Difference()
	o.ClearingKnown = len(open) - o.ClearingProblems
	o.Garbage, o.Damaged, err = s.Volumes.Trouble(ctx)
	return err
}
