package pod

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/fail"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/volume"
)

// An Agent is a proven right of one instance's agent: its token opened it.
type Agent struct {
	pod      *Pod
	instance *Instance
}

// Authenticate finds the instance of an agent's token. The faults are
// ErrAgentToken for a token that never was, and ErrFenced when the instance is
// on its way out or its pod has ended.
func (s *Service) Authenticate(ctx context.Context, token string) (*Agent, error) {
	rows, _ := s.Pool.Query(ctx, sqlInstanceOfAgent, id.Hash(token))
	in, err := oneInstance(rows, uuid.Nil)
	if err != nil {
		return nil, err
	}
	if in == nil {
		return nil, ErrAgentToken
	}
	if in.State == Terminating || in.State == Gone {
		return nil, ErrFenced
	}
	p, err := findPod(ctx, s.Pool, in.PodID)
	if err != nil {
		return nil, err
	}
	if p.Status == Deleted {
		return nil, ErrFenced
	}
	return &Agent{pod: p, instance: in}, nil
}

// attachment is the agent's right to its pod's volume.
func (a *Agent) attachment() volume.Attachment {
	return volume.Attachment{
		VolumeID: a.pod.VolumeID, PodID: a.pod.ID, Epoch: a.pod.VolumeEpoch, Final: a.pod.Status.Ending(),
	}
}

// Hello lets an agent in: the first of an instance moves the pod to mounting.
// A later one, of an agent that restarted, goes on where the pod is.
func (s *Service) Hello(ctx context.Context, a *Agent, h agentapi.Hello) (agentapi.Welcome, error) {
	var w agentapi.Welcome
	grant, err := s.Volumes.Grant(ctx, a.attachment(), h.Restarted)
	if err != nil {
		return w, err
	}
	hostKey, err := s.Box.Open(a.pod.HostKeySealed, hostKeyPurpose(a.pod.ID))
	if err != nil {
		return w, err
	}
	var check *agentapi.Check
	err = s.changeInstance(ctx, a.instance, func(tx pgx.Tx, p *Pod, in *Instance) error {
		if in.State == Terminating || in.State == Gone {
			return ErrFenced
		}
		a.pod, a.instance = p, in
		if err := s.helloTx(ctx, tx, p, in); err != nil {
			return err
		}
		check, err = s.askCheckTx(ctx, tx, p, in, h)
		return err
	})
	if err != nil {
		return w, err
	}
	orders, err := s.ordersOf(ctx, a.pod)
	if err != nil {
		return w, err
	}
	w = agentapi.Welcome{
		PodID: a.pod.ID.String(), Hostname: id.First(a.pod.ID), HostKey: string(hostKey),
		AuthorizedKeys: orders.AuthorizedKeys, ProbeKey: a.pod.ProbeKeyLine, Notice: orders.Notice,
		Phase: agentapi.PhaseMounting, Volume: grant, Check: check,
	}
	if a.pod.RestoredWallAt != nil {
		w.Phase = agentapi.PhaseServing
	}
	return w, nil
}

func (s *Service) helloTx(ctx context.Context, tx pgx.Tx, p *Pod, in *Instance) error {
	wall := s.Clock.Wall()
	if in.AgentSeenWallAt == nil && s.late(in, wall) {
		in.turned(OutcomeSlow, wall)
	}
	in.AgentSeenWallAt, in.GoneSeenWallAt = &wall, nil
	if err := saveInstance(ctx, tx, in); err != nil {
		return err
	}
	for p.Status == Pending || p.Status == Starting {
		event := AgentIn
		if p.Status == Pending { // the launch's answer is not recorded yet
			event = Launched
		}
		status, err := p.Status.After(event)
		if err != nil {
			return err
		}
		p.Status, p.StatusWallAt, p.ProgressWallAt, p.StatusDetail = status, wall, wall, ""
	}
	return savePod(ctx, tx, p)
}

// notice is the message of the day.
func (s *Service) notice(p *Pod) string {
	lines := []string{
		fmt.Sprintf("Homeport pod %s: %dx %s on %s.", id.First(p.ID), p.GPUCount, p.GPUType, p.Provider),
		"/workspace is your volume: it is synced in the background and kept. Everything else goes with the pod.",
	}
	if a := s.Adapters[p.Adapter]; a != nil {
		if n := a.Capabilities().Notice; n != "" {
			lines = append(lines, n)
		}
	}
	return strings.Join(lines, "\n")
}

// Lease is the heartbeat. It answers at once when the orders differ from what
// the agent has seen, else after at most the time the agent waits.
func (s *Service) Lease(ctx context.Context, a *Agent, l agentapi.Lease) (agentapi.Orders, error) {
	if err := s.heartbeat(ctx, a, l); err != nil {
		return agentapi.Orders{}, err
	}
	wait := min(time.Duration(max(l.WaitSeconds, 0))*time.Second, agentapi.LeaseEvery)
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	for {
		woken := s.orders.wait(a.pod.ID)
		p, err := findPod(ctx, s.Pool, a.pod.ID)
		if err != nil {
			return agentapi.Orders{}, err
		}
		if p.Status == Deleted {
			return agentapi.Orders{}, ErrFenced
		}
		orders, err := s.ordersOf(ctx, p)
		if err != nil || wait == 0 || orders.Version != l.Seen || s.orders.drained() {
			return orders, err
		}
		select {
		case <-ctx.Done():
			return orders, nil
		case <-deadline.C:
			return orders, nil
		case <-woken:
		}
	}
}

const sqlHeartbeat = `
update instance set agent_seen_wall_at = $2, gone_seen_wall_at = null
 where id = $1 and state not in ('terminating', 'gone')`

const sqlNoteProgress = `
update pod set progress = $2, progress_moved = $3, progress_wall_at = $4, moved_wall_at = $4
 where id = $1 and (progress <> $2 or progress_moved <> $3) and status in ('mounting', 'deleting', 'switching_off')`

const sqlClearUnreachable = `
update pod set status_detail = '' where id = $1 and status = 'ready' and status_detail <> ''`

// heartbeat records that the agent lives and how far it is.
func (s *Service) heartbeat(ctx context.Context, a *Agent, l agentapi.Lease) error {
	wall := s.Clock.Wall()
	tag, err := s.Pool.Exec(ctx, sqlHeartbeat, a.instance.ID, wall)
	if err != nil {
		return fmt.Errorf("heartbeat of %s: %w", a.instance.Name, err)
	}
	if tag.RowsAffected() == 0 {
		return ErrFenced
	}
	switch {
	case l.Phase == agentapi.PhaseDone && a.pod.Status.Ending() && a.pod.RestoredWallAt != nil:
		return s.finalDone(ctx, a)
	case a.pod.Status == Ready && a.pod.StatusDetail != "":
		_, err = s.Pool.Exec(ctx, sqlClearUnreachable, a.pod.ID)
	case a.pod.Status == Mounting || a.pod.Status.Ending():
		moved := l.Progress.BytesDone + l.Progress.FilesDone
		_, err = s.Pool.Exec(ctx, sqlNoteProgress, a.pod.ID, percent(l.Progress), moved, wall)
	}
	if err != nil {
		return fmt.Errorf("progress of pod %s: %w", a.pod.ID, err)
	}
	return nil
}

// percent is how far a restore or a sync is: by bytes, or by files when there
// are no bytes to move. 100 is kept for the end.
func percent(p agentapi.Progress) int {
	done, total := p.BytesDone, p.BytesTotal
	if total <= 0 {
		done, total = p.FilesDone, p.FilesTotal
	}
	if total <= 0 || done <= 0 {
		return 0
	}
	return int(min(float64(done)/float64(total), 0.99) * 100)
}

// Restored opens the gate of commits: /workspace is whole. The pod is ready
// when our own log-in works.
func (s *Service) Restored(ctx context.Context, a *Agent, r agentapi.Restored) error {
	if r.Epoch != a.pod.VolumeEpoch {
		return ErrFenced
	}
	err := s.changeInstance(ctx, a.instance, func(tx pgx.Tx, p *Pod, in *Instance) error {
		if in.State == Terminating || in.State == Gone || p.Status == Deleted {
			return ErrFenced
		}
		if p.RestoredWallAt != nil || p.Status != Mounting {
			return nil
		}
		wall := s.Clock.Wall()
		p.RestoredWallAt, p.ProgressWallAt, p.NextWallAt = &wall, wall, &wall
		if err := savePod(ctx, tx, p); err != nil {
			return err
		}
		if err := s.Volumes.MarkRestoredTx(ctx, tx, p.VolumeID, p.VolumeEpoch); err != nil {
			return err
		}
		return s.nudgeTx(ctx, tx, p.ID)
	})
	return err
}

// Failed ends a set-up that the agent cannot finish: damaged data ends the pod,
// anything else lets another machine be tried.
func (s *Service) Failed(ctx context.Context, a *Agent, f agentapi.Failed) error {
	if f.Epoch != a.pod.VolumeEpoch {
		return ErrFenced
	}
	s.Logger.ErrorContext(ctx, "agent cannot set its pod up", "pod", a.pod.ID, "code", f.Code, "detail", f.Detail)
	if f.Code == "damaged" {
		return s.failSetup(ctx, a.pod, ReasonDamaged,
			"Some data of the volume's newest version could not be read back. Nothing was charged and nothing was changed. An earlier version may be whole: its files are listed, and restored, on the storage page.")
	}
	return s.tryNext(ctx, a.pod, a.instance, OutcomeFailed, "The machine could not mount the volume.")
}

// Sign gives the agent grants for objects of its own volume.
func (s *Service) Sign(ctx context.Context, a *Agent, sign agentapi.Sign) (agentapi.Grants, error) {
	return s.Volumes.Sign(ctx, a.attachment(), sign)
}

const sqlNoteSynced = `
update pod set synced_at = $2, progress_wall_at = $3, moved_wall_at = $3 where id = $1 and restored_wall_at is not null`

// NoteCommitTx joins the transaction that moves a volume's head, before the
// volume is locked: the pod shows when it was last synced. It refuses the
// commit of a pod whose present machine has not reported its restore; a machine
// before it may have. The fault is volume.ErrNotRestored.
func (s *Service) NoteCommitTx(ctx context.Context, tx pgx.Tx, _, podID uuid.UUID, _ bool, at time.Time) error {
	tag, err := tx.Exec(ctx, sqlNoteSynced, podID, at, s.Clock.Wall())
	if err != nil {
		return fmt.Errorf("note the sync of pod %s: %w", podID, err)
	}
	if tag.RowsAffected() == 0 {
		return volume.ErrNotRestored
	}
	return nil
}

// Commit moves the volume's head. After the last one the pod ends.
func (s *Service) Commit(ctx context.Context, a *Agent, c agentapi.Commit) (agentapi.Committed, error) {
	done, final, err := s.Volumes.Commit(ctx, a.attachment(), c)
	if err != nil {
		return done, err
	}
	if final {
		err = s.finalDone(ctx, a)
	}
	return done, err
}

// finalDone records that nothing of the pod is left to sync; the reconciler
// ends it. It is accepted only while the pod is ending.
func (s *Service) finalDone(ctx context.Context, a *Agent) error {
	err := s.changeInstance(ctx, a.instance, func(tx pgx.Tx, p *Pod, in *Instance) error {
		if !p.Status.Ending() || p.FinalWallAt != nil {
			return nil
		}
		if in.State == Terminating || in.State == Gone {
			return ErrFenced
		}
		wall := s.Clock.Wall()
		p.FinalWallAt, p.NextWallAt, p.Progress = &wall, &wall, 100
		p.restFinal(s.Clock.Now(), s.Limits)
		if err := s.stopMeterTx(ctx, tx, p); err != nil {
			return err
		}
		if err := savePod(ctx, tx, p); err != nil {
			return err
		}
		return s.nudgeTx(ctx, tx, p.ID)
	})
	if errors.Is(err, ErrNotFound) {
		return ErrFenced
	}
	if err == nil {
		fail.Point("pod.final.committed")
	}
	return err
}
