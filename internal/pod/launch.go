package pod

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/fail"
	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/offer"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/team"
)

// maxAttempts is the chosen offer and three equal ones (server rule 5).
const maxAttempts = 4

// Three ends of an instance say nothing against its offer, which is then tried
// again. Two of them at most maxRepeats times: the host used its SSH port
// already, or nobody knows how the call ended and no machine appeared. The
// third for as long as a pod may be pending: the cloud took no call.
const (
	maxRepeats    = 20
	reasonPort    = "port taken"
	reasonUnclear = "no machine after an unclear answer"
	reasonBusy    = "the cloud took no call"
)

// launch asks a provider for a machine: the intent is committed, the call is
// made, its end is recorded. A crash between them leaves an intent that any
// node finds again by its name. It reports whether to look at the pod again now.
func (s *Service) launch(ctx context.Context, p *Pod) (bool, error) {
	in, token, err := s.intend(ctx, p)
	if err != nil || in == nil {
		return false, err
	}
	fail.Point("pod.launch.intent")
	adapter := s.Adapters[in.Provider]
	call, cancel := context.WithTimeout(ctx, s.Limits.LaunchFor)
	defer cancel()
	m, called := adapter.Launch(call, provider.Launch{
		Name: in.Name, Offer: in.Offer, MaxPrice: in.Offer.UpstreamPrice, SSHPort: in.SSHPort,
		KeepUntil: in.CreatedWallAt.Add(keepFor),
		Bootstrap: provider.Bootstrap{AgentURL: s.AgentURL, Token: token, Hostname: id.First(in.PodID)},
	})
	fail.Point("pod.launch.called")
	s.noteCall(ctx, in.Provider, offer.CallLaunch, called)
	if err := s.recordLaunch(context.WithoutCancel(ctx), in, m, called); err != nil {
		return false, err
	}
	fail.Point("pod.launch.recorded")
	return true, nil
}

// intend chooses the offer of the next attempt and commits its name. A nil
// instance says that there was nothing to do, or that the set-up failed.
func (s *Service) intend(ctx context.Context, p *Pod) (*Instance, string, error) {
	var made *Instance
	var token string
	var found choice
	err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		made, found = nil, chosen
		p, err := lockPod(ctx, tx, p.ID)
		if err != nil || p.Status != Pending {
			return err
		}
		tried, err := instancesOfPod(ctx, tx, p.ID)
		if err != nil {
			return err
		}
		if n := len(tried); n > 0 && (tried[n-1].State == Running || tried[n-1].unclear() || tried[n-1].rests(s.Clock.Wall())) {
			return nil // another node was faster
		}
		found, err = s.chooseTx(ctx, tx, p, tried)
		if err == nil && found == later {
			p.NextWallAt, p.StatusDetail = ptr(s.Clock.Wall().Add(brokenLook)), "The cloud does not answer at the moment. Trying again."
			return savePod(ctx, tx, p)
		}
		if err != nil || found == none {
			return err
		}
		if p.SSHPort, err = ownPort(ctx, tx, p.ID); err != nil { // the machine before may have chosen another
			return err
		}
		p.Attempts++
		if err := savePod(ctx, tx, p); err != nil {
			return err
		}
		made, token, err = s.intendTx(ctx, tx, p, s.Clock.Wall())
		return err
	})
	if err != nil {
		return nil, "", err
	}
	if found == none {
		return nil, "", s.failSetup(ctx, p, ReasonSetup, "")
	}
	return made, token, nil
}

// A choice is what came of looking for an offer.
type choice int

const (
	chosen choice = iota
	later         // the only one is of a cloud that does not work now
	none
)

// chooseTx sets the pod's offer for its next attempt: the chosen one first, then
// equal ones at no more than the maximum (server rule 5). Nothing is launched at
// a cloud whose breaker is open; for the chosen offer a pod waits as long as it
// may be pending.
func (s *Service) chooseTx(ctx context.Context, tx pgx.Tx, p *Pod, tried []*Instance) (choice, error) {
	used, repeats := s.usedUp(p, tried)
	if len(used) >= maxAttempts || repeats >= maxRepeats {
		return none, nil
	}
	orig := p.Offer
	if len(tried) > 0 {
		orig = tried[0].Offer
	}
	if slices.Contains(used, offer.TupleOf(p.Offer)) {
		return s.chooseEqualTx(ctx, tx, p, orig, used)
	}
	if s.Adapters[p.Adapter] == nil {
		return none, nil
	}
	open, err := s.Offers.OpenTx(ctx, tx, p.Adapter)
	if err != nil || !open {
		return chosen, err
	}
	found, err := s.chooseEqualTx(ctx, tx, p, orig, append(used, offer.TupleOf(p.Offer)))
	if found == none && s.Clock.Wall().Sub(p.StatusWallAt) < s.Limits.PendingFor {
		found = later
	}
	return found, err
}

// chooseEqualTx gives the pod the best offer that may stand in for orig.
func (s *Service) chooseEqualTx(ctx context.Context, tx pgx.Tx, p *Pod, orig provider.Offer, used []offer.Tuple) (choice, error) {
	plan, err := team.PlanTx(ctx, tx, p.TeamID)
	if err != nil {
		return none, err
	}
	quotes, err := s.Offers.EqualTx(ctx, tx, orig, plan, p.MaxRate, used)
	if err != nil {
		return none, err
	}
	if err := s.rankTx(ctx, tx, quotes); err != nil {
		return none, err
	}
	for _, q := range quotes {
		if s.Adapters[q.Adapter] == nil {
			continue
		}
		p.Offer, p.Adapter, p.Provider, p.Country = q.Offer, q.Adapter, q.Offer.Provider, q.Offer.Country
		p.Rate, p.ListRate = q.Rate, q.ListRate
		p.StatusWallAt = s.Clock.Wall() // its cloud has as long as the one before
		return chosen, nil
	}
	return none, nil
}

// recordLaunch writes down how the call ended.
func (s *Service) recordLaunch(ctx context.Context, in *Instance, m provider.Machine, called error) error {
	if called != nil {
		s.Logger.WarnContext(ctx, "launch did not succeed", "provider", in.Provider, "instance", in.Name, "err", called)
	}
	if errors.Is(called, provider.ErrNoCapacity) {
		if err := s.Offers.MarkSoldOut(ctx, offer.TupleOf(in.Offer), s.Clock.Wall()); err != nil {
			return err
		}
	}
	unsupported := errors.Is(called, provider.ErrUnsupported)
	err := s.changeInstance(ctx, in, func(tx pgx.Tx, p *Pod, in *Instance) error {
		wall := s.Clock.Wall()
		switch {
		case called == nil:
			return s.adoptTx(ctx, tx, p, in, m)
		case !in.unclear():
			return nil
		case !refused(called):
			in.set(Ambiguous, called.Error(), wall)
			return saveInstance(ctx, tx, in)
		}
		return s.refusedTx(ctx, tx, p, in, called)
	})
	if err != nil || !unsupported {
		return err
	}
	p, err := findPod(ctx, s.Pool, in.PodID)
	if err != nil {
		return err
	}
	return s.failSetup(ctx, p, ReasonSetup, fault.Of(called).Detail)
}

// refusedTx records a call that made no machine, and what is tried next.
func (s *Service) refusedTx(ctx context.Context, tx pgx.Tx, p *Pod, in *Instance, called error) error {
	wall := s.Clock.Wall()
	in.set(Gone, called.Error(), wall)
	portTaken, waits := errors.Is(called, provider.ErrPortTaken), busy(called) && p.Status == Pending
	switch {
	case portTaken:
		in.Reason = reasonPort
	case waits:
		in.Reason = reasonBusy
		in.NextWallAt = ptr(wall.Add(s.busyFor(wall.Sub(p.StatusWallAt), called)))
	}
	if err := saveInstance(ctx, tx, in); err != nil || !p.Status.SettingUp() {
		return err
	}
	if waits {
		p.NextWallAt, p.StatusDetail = in.NextWallAt, "The cloud is busy at the moment. Trying again."
		return savePod(ctx, tx, p)
	}
	if portTaken {
		if err := s.otherPortTx(ctx, tx, p); err != nil {
			return err
		}
	}
	return s.backToPendingTx(ctx, tx, p, fault.Of(called).Detail)
}

// otherPortTx gives the pod another SSH port than one the host uses already.
func (s *Service) otherPortTx(ctx context.Context, tx pgx.Tx, p *Pod) error {
	if err := freePort(ctx, tx, p.ID, s.Clock.Wall()); err != nil {
		return err
	}
	var err error
	p.SSHPort, err = takePort(ctx, tx, p.ID)
	return err
}

// refused reports whether the provider said clearly that no machine was made.
func refused(err error) bool {
	return provider.NoMachine(err)
}

// adoptTx records that the provider has the machine. When the pod does not want
// it any more, it stays on its way to its end, now with a reference.
func (s *Service) adoptTx(ctx context.Context, tx pgx.Tx, p *Pod, in *Instance, m provider.Machine) error {
	in.Ref = m.Ref
	in.at(m)
	if !in.unclear() {
		return saveInstance(ctx, tx, in)
	}
	wall := s.Clock.Wall()
	in.set(Running, "", wall)
	if err := saveInstance(ctx, tx, in); err != nil || !p.Status.SettingUp() {
		return err
	}
	if p.Status == Pending {
		status, err := p.Status.After(Launched)
		if err != nil {
			return err
		}
		p.Status, p.StatusWallAt, p.ProgressWallAt = status, wall, wall
	}
	p.SSHPort, p.StatusDetail = in.SSHPort, ""
	p.NextWallAt = ptr(wall.Add(3 * time.Second))
	return savePod(ctx, tx, p)
}

// doubt marks a call whose caller died, or which took too long, as ambiguous.
func (s *Service) doubt(ctx context.Context, in *Instance) error {
	return s.changeInstance(ctx, in, func(tx pgx.Tx, _ *Pod, in *Instance) error {
		if in.State != Intent {
			return nil
		}
		in.set(Ambiguous, "the call's end is not known", s.Clock.Wall())
		return saveInstance(ctx, tx, in)
	})
}

// find asks the provider for one machine by its name, if it has not ended.
func (s *Service) find(ctx context.Context, in *Instance) (provider.Machine, bool, error) {
	m, found, err := s.listed(ctx, in)
	return m, found && m.State != provider.Gone, err
}

// listed asks the provider for one machine by its name, whatever its state.
func (s *Service) listed(ctx context.Context, in *Instance) (provider.Machine, bool, error) {
	adapter := s.Adapters[in.Provider]
	if adapter == nil {
		return provider.Machine{}, false, fmt.Errorf("provider %s is not configured any more", in.Provider)
	}
	call, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	list, err := adapter.Find(call, in.Name)
	s.noteCall(ctx, in.Provider, offer.CallOther, err)
	if err != nil {
		return provider.Machine{}, false, err
	}
	for _, m := range list {
		if m.Name == in.Name {
			return m, true, nil
		}
	}
	return provider.Machine{}, false, nil
}

// look is find for those who come again: an error is logged, and then nothing is
// known.
func (s *Service) look(ctx context.Context, in *Instance) (m provider.Machine, found, known bool) {
	m, found, err := s.find(ctx, in)
	if err != nil {
		s.Logger.WarnContext(ctx, "provider does not answer", "provider", in.Provider, "instance", in.Name, "err", err)
		return provider.Machine{}, false, false
	}
	return m, found, true
}

// locate looks for an ambiguous machine: found, it is adopted; not found for
// as long as one may appear late, another is tried, and this name is watched on.
func (s *Service) locate(ctx context.Context, in *Instance) (bool, error) {
	m, found, known := s.look(ctx, in)
	again := false
	err := s.changeInstance(ctx, in, func(tx pgx.Tx, p *Pod, in *Instance) error {
		if in.State != Ambiguous {
			again = true
			return nil
		}
		if found && m.State.Alive() {
			again = true
			return s.adoptTx(ctx, tx, p, in, m)
		}
		waited, reason := s.Clock.Wall().Sub(in.StateWallAt), reasonUnclear
		if !known {
			reason = "the cloud does not answer"
		}
		if late := known && waited >= s.appearsIn(in) || waited >= max(s.Limits.PendingFor, s.appearsIn(in)); !found && !late {
			in.Tries++
			return saveInstance(ctx, tx, in)
		}
		again = true
		in.Ref = m.Ref
		if err := s.dropTx(ctx, tx, in, reason); err != nil || !p.Status.SettingUp() {
			return err
		}
		return s.backToPendingTx(ctx, tx, p, "The cloud did not answer clearly.")
	})
	return again, err
}

// appearsIn is how long after an unclear answer a machine may still appear.
func (s *Service) appearsIn(in *Instance) time.Duration {
	if a := s.Adapters[in.Provider]; a != nil {
		if d := a.Capabilities().AppearsIn; d > 0 {
			return d
		}
	}
	return s.Limits.LocateFor
}

// alternatives is the sentence that names what could be rented instead.
func (s *Service) alternatives(ctx context.Context, p *Pod) string {
	const none = "This configuration is not available any more. Nothing was charged."
	var names string
	err := pg.InTx(ctx, s.Pool, func(tx pgx.Tx) error {
		plan, err := team.PlanTx(ctx, tx, p.TeamID)
		if err != nil {
			return err
		}
		names, err = s.Offers.AlternativesTx(ctx, tx, offer.TupleOf(p.Offer), plan)
		return err
	})
	if err != nil || names == "" {
		return none
	}
	return none + " " + names
}
