package pod

import (
	"context"
	"fmt"

	"homeport.dev/homeport/internal/id"
)

// Names publishes the pod's host name where names are ours to give.
func (s *Service) Names(ctx context.Context, p *Pod, in *Instance) error {
	if s.DNS == nil {
		return nil
	}
	return s.DNS.Add(ctx, s.name(p), in.Host)
}

func (s *Service) name(p *Pod) string { return id.First(p.ID) + "." + s.Host }

// settleName makes a pod's name lead where it must before an instance of the pod
// counts as gone: a failure is tried again with that. The name of a pod that is
// over is taken back, which is reported: one that stayed would lead people to
// whoever gets the machine's address next. The name of one that was started again
// is published anew, for a name server may have been slow to forget it.
func (s *Service) settleName(ctx context.Context, in *Instance) (forgotten bool, err error) {
	p, err := findPod(ctx, s.Pool, in.PodID)
	switch {
	case err != nil:
		return false, err
	case s.DNS == nil:
		return p.over(), nil
	case p.over():
		return true, s.DNS.Remove(ctx, s.name(p))
	case p.RelaunchedAs != nil:
		return false, s.passName(ctx, p)
	}
	return false, nil
}

// passName makes the name of a pod that was started again lead to the last of
// its successors, unless that will publish it by itself, or nowhere if that has
// ended too. Whichever it is may change until the name leads there.
func (s *Service) passName(ctx context.Context, p *Pod) error {
	last, in, err := s.holder(ctx, p)
	for range 4 {
		switch {
		case err != nil:
			return err
		case last.Status == Deleted:
			err = s.DNS.Remove(ctx, s.name(last))
		case in != nil && in.State == Running && in.Host != "":
			err = s.Names(ctx, last, in)
		default:
			return nil // it has no address yet, or none any more
		}
		if err != nil {
			return err
		}
		was, led := last, in
		last, in, err = s.holder(ctx, last)
		if err == nil && last.ID == was.ID && last.Status == was.Status && (in == nil || in.ID == led.ID && in.State == led.State) {
			return nil
		}
	}
	return fmt.Errorf("the name of pod %s moves all the time", p.ID)
}

// holder is the last pod of those that took a pod's place, with its instance;
// nil when none was tried.
func (s *Service) holder(ctx context.Context, p *Pod) (*Pod, *Instance, error) {
	p, err := findPod(ctx, s.Pool, p.ID)
	for err == nil && p.RelaunchedAs != nil {
		p, err = findPod(ctx, s.Pool, *p.RelaunchedAs)
	}
	if err != nil {
		return nil, nil, err
	}
	in, err := currentInstance(ctx, s.Pool, p.ID)
	return p, in, err
}
