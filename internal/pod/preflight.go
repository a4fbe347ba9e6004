package pod

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/gpu"
)

// A Preflight says what a machine must show before its pod is ready; the zero
// value of each number means its default.
type Preflight struct {
	Off             bool
	DiskMin, NetMin int64 // bytes per second: 40 MB and 2 MB; below 0 = not measured
}

func (l Preflight) withDefaults() Preflight {
	if l.DiskMin == 0 {
		l.DiskMin = 40_000_000
	}
	if l.NetMin == 0 {
		l.NetMin = 2_000_000
	}
	return l
}

// What is moved to measure a speed, and for how long at most.
const (
	checkDisk    = 256 << 20
	checkNet     = 16 << 20
	checkSeconds = 8
)

// check is what the agent of a machine is asked to look at.
func (l Preflight) check() *agentapi.Check {
	c := &agentapi.Check{Seconds: checkSeconds}
	if l.DiskMin > 0 {
		c.DiskBytes = checkDisk
	}
	if l.NetMin > 0 {
		c.NetBytes = checkNet
	}
	return c
}

// fails says, for people, why a machine is not what was sold; "" = it is.
func (l Preflight) fails(o provider.Offer, found agentapi.Checked, noGPUs bool) string {
	why := ""
	if !noGPUs {
		why = failsGPUs(o, found)
	}
	switch {
	case why != "":
		return why
	case found.DiskRate > 0 && found.DiskRate < l.DiskMin:
		return fmt.Sprintf("Its disk writes %s MB a second only.", megabytes(found.DiskRate))
	case found.NetRate > 0 && found.NetRate < l.NetMin:
		return fmt.Sprintf("Its network moves %s MB a second only.", megabytes(found.NetRate))
	}
	return ""
}

func failsGPUs(o provider.Offer, found agentapi.Checked) string {
	if len(found.GPUs) == 0 {
		return "No GPU was found in it."
	}
	if len(found.GPUs) < o.GPUCount {
		return fmt.Sprintf("It has %d of %d GPUs.", len(found.GPUs), o.GPUCount)
	}
	want, known := gpu.Lookup(o.GPUType)
	for _, g := range found.GPUs {
		is, named := gpu.Named(g.Name, g.MemoryMiB)
		switch {
		case !known: // not in our vocabulary: its number and CUDA must do
		case named && is.Token != want.Token:
			return fmt.Sprintf("It has an %s instead of an %s.", words(is.Token), words(want.Token))
		case !named && g.MemoryMiB > 0 && !want.Enough(g.MemoryMiB):
			return fmt.Sprintf("A GPU of it has %d GB of memory instead of %d.", g.MemoryMiB/1024, want.VRAMGB)
		}
	}
	if found.CUDAError != "" {
		return "CUDA does not start on it: " + found.CUDAError + "."
	}
	return ""
}

// words is a GPU's token for people.
func words(token string) string { return strings.ReplaceAll(token, "_", " ") }

// megabytes writes bytes in MB, with one decimal.
func megabytes(bytes int64) string {
	return fmt.Sprintf("%d.%d", bytes/1_000_000, bytes/100_000%10)
}

const sqlAskCheck = `update instance set check_asked = true where id = $1 and checked_wall_at is null`

// askCheckTx has the agent of a machine that was not looked over do so before it
// restores, if it can: its pod is not ready without.
func (s *Service) askCheckTx(ctx context.Context, tx pgx.Tx, p *Pod, in *Instance, h agentapi.Hello) (*agentapi.Check, error) {
	if s.Limits.Preflight.Off || !h.Checks || in.CheckedWallAt != nil || p.RestoredWallAt != nil || !p.Status.SettingUp() {
		return nil, nil
	}
	if _, err := tx.Exec(ctx, sqlAskCheck, in.ID); err != nil {
		return nil, fmt.Errorf("ask for a check of %s: %w", in.Name, err)
	}
	in.CheckAsked = true
	return s.Limits.Preflight.check(), nil
}

const sqlNoteChecked = `update instance set checked_wall_at = $2, found = $3 where id = $1 and checked_wall_at is null`

// Checked takes what an agent found of its machine. One that is not what was
// sold is left for the next equal offer, free of charge, and counts against its
// cloud. Saying it again changes nothing. The fault is ErrFenced.
func (s *Service) Checked(ctx context.Context, a *Agent, found agentapi.Checked) error {
	if found.Epoch != a.pod.VolumeEpoch {
		return ErrFenced
	}
	adapter := s.Adapters[a.instance.Provider]
	noGPUs := adapter != nil && adapter.Capabilities().NoGPUs
	if why := s.Limits.Preflight.fails(a.instance.Offer, found, noGPUs); why != "" {
		s.Logger.WarnContext(ctx, "a machine is not what was sold", "provider", a.instance.Provider, "instance", a.instance.Name,
			"offer", a.instance.Offer.CloudID, "why", why)
		return s.tryNext(ctx, a.pod, a.instance, OutcomeBadHost, "The machine did not pass its check. "+why)
	}
	if _, err := s.Pool.Exec(ctx, sqlNoteChecked, a.instance.ID, s.Clock.Wall(), found); err != nil {
		return fmt.Errorf("note the check of %s: %w", a.instance.Name, err)
	}
	return nil
}
