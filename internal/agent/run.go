//go:build linux

package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"homeport.dev/homeport/internal/agentapi"
	"homeport.dev/homeport/internal/snapshot"
)

// errStopped ends an agent that was told to end.
var errStopped = errors.New("stopped by the control plane")

// evictWait is how long an evicted agent tries to say that it is done.
const evictWait = 5 * time.Second

// agent is one run of Run.
type agent struct {
	cfg    Config
	log    *slog.Logger
	client *client
	status *status
	keys   *keyring
	procs  *table
	driver driver
	sshd   *sshServer // set before the heartbeat begins
	end    context.CancelCauseFunc

	welcome agentapi.Welcome // its Volume changes with a new Hello
	key     snapshot.Key
	store   *store
	syncer  *snapshot.Syncer // nil: make one

	said    atomic.Pointer[agentapi.Phase] // the phase of the last heartbeat that was answered
	landing landing
	syncNow chan struct{}
	final   chan struct{} // closed when the last sync is asked for
	once    sync.Once     // of final
	frozen  chan struct{} // closed when SSH and the users' processes ended
	calm    bool          // all of them did; valid once frozen is closed
	wg      sync.WaitGroup
}

// Run is the life of an agent: it ends when the control plane says so, which
// is no error, when the attachment is over (ErrFenced, ErrRefused), or with
// ctx. The pod's other processes are gone by then.
func Run(ctx context.Context, cfg Config) error {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return err
	}
	for _, dir := range []string{cfg.StateDir, cfg.Workspace} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("prepare the agent's folders: %w", err)
		}
	}
	ctx, end := context.WithCancelCause(ctx)
	a := &agent{
		cfg: cfg, log: cfg.Logger, client: newClient(cfg), keys: &keyring{}, procs: newTable(cfg.Alone), driver: newDriver(), end: end,
		status:  &status{lease: agentapi.Lease{Phase: agentapi.PhaseMounting}},
		landing: landing{changed: make(chan struct{}, 1)},
		syncNow: make(chan struct{}, 1), final: make(chan struct{}), frozen: make(chan struct{}),
	}
	defer a.client.http.CloseIdleConnections()
	if a.procs.reaps() {
		reapCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
		var reaper sync.WaitGroup
		reaper.Go(func() { a.procs.reap(reapCtx) })
		defer reaper.Wait()
		defer stop()
	}
	restoreSignals()
	cfg.Ready()
	err = a.live(ctx)
	end(err)
	a.wg.Wait()
	if a.sshd != nil {
		a.sshd.close()
	}
	a.procs.killAll(context.WithoutCancel(ctx), killLast)
	if errors.Is(err, errStopped) {
		return nil
	}
	return err
}

// restoreSignals makes the processes that are started from here know hang-ups
// and Ctrl-C although the agent was started without: nohup ignores the one, a
// shell that puts the agent into the background the other, and what is ignored
// is inherited by every program after, which shells cannot undo. What is caught
// is not; the agent itself goes on ignoring them.
func restoreSignals() {
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}

// live goes from the first Hello to the end.
func (a *agent) live(ctx context.Context) error {
	mark, err := readMark(a.cfg.StateDir)
	if err != nil {
		return err
	}
	if err := a.hello(ctx, mark != nil); err != nil {
		return err
	}
	w := a.welcome
	if err := a.keys.setProbe(w.ProbeKey); err != nil {
		return err
	}
	motd := func() string { return a.status.motd(a.cfg.Limits) + a.landing.greeting(a.cfg.Clock.Wall()) }
	if a.sshd, err = newSSHServer([]byte(w.HostKey), a.keys, a.procs, a.cfg.Home, motd, a.log); err != nil {
		return err
	}
	a.setKeys(w.AuthorizedKeys)
	a.status.setNotice(w.Notice)
	a.store = newStore(ctx, a.client, a.cfg.Clock, w.Volume.Epoch)
	a.wg.Go(func() { a.lease(ctx) })
	a.wg.Go(func() { a.watchEviction(ctx) })
	a.wg.Go(func() { a.followLanding(ctx) })

	if err := a.preflight(ctx); err != nil {
		return err
	}
	restored, err := a.mount(ctx, mark)
	if err != nil {
		return err
	}
	if !restored { // the pod is to end before it began: nothing is synced
		return a.done(ctx)
	}
	a.wg.Go(func() { a.freeze(ctx) })
	a.sshd.serve(ctx, a.cfg.SSH)
	if err := a.client.persist(ctx, agentapi.PathRestored, callTimeout, agentapi.Restored{Epoch: w.Volume.Epoch}, nil); err != nil {
		return err
	}
	a.status.setPhase(agentapi.PhaseServing)
	if err := a.syncUntilFinal(ctx); err != nil {
		return err
	}
	if err := a.syncFinal(ctx); err != nil {
		return err
	}
	return a.done(ctx)
}

// hello says hello and takes over what is answered.
func (a *agent) hello(ctx context.Context, restarted bool) error {
	free, err := diskFree(a.cfg.Workspace)
	if err != nil {
		return err
	}
	h := agentapi.Hello{Version: a.cfg.Version, Arch: runtime.GOARCH, DiskFree: free, Restarted: restarted, Checks: true}
	var w agentapi.Welcome
	if err := a.client.persist(ctx, agentapi.PathHello, callTimeout, h, &w); err != nil {
		return err
	}
	if err := a.key.UnmarshalJSON(w.Volume.Key); err != nil {
		return err
	}
	a.welcome = w
	return nil
}

// askFinal begins the end of the pod. It may be called often.
func (a *agent) askFinal() {
	a.once.Do(func() {
		a.status.setPhase(agentapi.PhaseFinal)
		close(a.final)
	})
}

func (a *agent) watchEviction(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-a.final:
	case <-a.cfg.Evicted: // nil: never
		a.askFinal()
	}
}

// done says that the last sync is in, and waits to be told to end.
func (a *agent) done(ctx context.Context) error {
	a.status.setPhase(agentapi.PhaseDone)
	select {
	case <-ctx.Done():
	case <-a.cfg.Evicted:
		limit, cancel := context.WithTimeout(ctx, evictWait)
		defer cancel()
		for a.saidPhase() != agentapi.PhaseDone && sleep(limit, killPoll) == nil {
		}
		return nil
	}
	if over(context.Cause(ctx)) {
		return nil // the volume is another pod's by now, with all of ours in it
	}
	return context.Cause(ctx)
}

func (a *agent) saidPhase() agentapi.Phase {
	if p := a.said.Load(); p != nil {
		return *p
	}
	return ""
}

// diskFree is how many bytes root can still write below dir.
func diskFree(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("measure the disk: %w", err)
	}
	return int64(st.Bavail) * st.Bsize, nil
}
