package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/provider"
)

// Config of the sandbox clouds.
type Config struct {
	Dir         string       // folder of all machines; nodes that share it share the clouds
	AgentBinary string       // homeport-agent for this host, executable for everybody
	Agent       http.Handler // answers /agent/v1/* on every machine's socket; nil = this process serves none
	Clock       *clock.Clock
	Logger      *slog.Logger
	PodHost     string // address at which a user reaches the machines; "" = 127.0.0.1
	Market      Market
}

// Market says how upstream prices move without a script.
type Market string

// The markets.
const (
	Constant Market = ""     // never
	Walk     Market = "walk" // a few per cent over hours
)

// Sandbox holds all sandbox clouds of one folder.
type Sandbox struct {
	Config
	dir     string // absolute Dir
	clouds  map[string]*cloud
	sockets sockets

	probe     sync.Once
	probed    chan struct{} // closed when supported is known
	supported error
	skel      sync.Mutex // one builder of the skeleton in this process

	life    sync.Mutex
	stop    context.CancelFunc // of Start; nil = not started
	stopped bool
	work    sync.WaitGroup // everything that runs in the background
}

// New returns the sandbox clouds of a folder, which it makes. It starts
// nothing: machines of an earlier run are found at once and served after Start.
func New(cfg Config) (*Sandbox, error) {
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("sandbox folder: %w", err)
	}
	if cfg.PodHost == "" {
		cfg.PodHost = "127.0.0.1"
	}
	s := &Sandbox{Config: cfg, dir: dir, clouds: map[string]*cloud{}, probed: make(chan struct{})}
	s.sockets.open = map[string]*socket{}
	cat, err := readCatalogue()
	if err != nil {
		return nil, err
	}
	for _, e := range cat.Clouds {
		c := &cloud{s: s, cloudEntry: e, dir: filepath.Join(dir, e.Name), byTuple: map[string]provider.Offer{}}
		if c.list, err = e.expand(); err != nil {
			return nil, err
		}
		for _, o := range c.list {
			c.byTuple[tuple(o)] = o
		}
		if err := os.MkdirAll(c.dir, 0o700); err != nil {
			return nil, fmt.Errorf("sandbox folder: %w", err)
		}
		s.clouds[e.Name] = c
	}
	return s, nil
}

// Clouds returns the adapter of each sandbox cloud by its name.
func (s *Sandbox) Clouds() map[string]provider.Adapter {
	m := make(map[string]provider.Adapter, len(s.clouds))
	for name, c := range s.clouds {
		m[name] = c
	}
	return m
}

// Supported says whether this host can run machines: nil, or ErrUnsupported
// whose sentence has the reason and the fix. It finds out once, by building a
// machine up to the point where its agent would begin.
func (s *Sandbox) Supported(ctx context.Context) error {
	lasting := context.WithoutCancel(ctx)
	s.probe.Do(func() {
		err := s.background(func() {
			s.supported = s.trial(lasting)
			close(s.probed)
		})
		if err != nil {
			s.supported = err
			close(s.probed)
		}
	})
	select {
	case <-s.probed:
		return s.supported
	case <-ctx.Done():
		return fmt.Errorf("try the sandbox: %w", ctx.Err())
	}
}

// sweepEvery is how soon a node notices machines and sockets it should serve.
const sweepEvery = time.Second

// Start serves the sockets of all machines, also of those that other nodes
// launch and lose, and finishes what an earlier run left half done, until ctx
// ends or Stop. Starting twice starts once.
func (s *Sandbox) Start(ctx context.Context) {
	s.life.Lock()
	defer s.life.Unlock()
	if s.stop != nil || s.stopped {
		return
	}
	ctx, s.stop = context.WithCancel(ctx)
	s.work.Go(func() { _ = s.Supported(ctx) }) // known before the first launch asks
	s.work.Go(func() { s.loop(ctx) })
}

func (s *Sandbox) loop(ctx context.Context) {
	s.sweepGroups()
	t := time.NewTicker(sweepEvery)
	defer t.Stop()
	for {
		s.sweep(ctx)
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// errStopped is a launch's answer after Stop. It made no machine, and says so
// to nobody: the node is on its way out.
var errStopped = errors.New("the sandbox clouds of this node are stopped")

// background runs f, which Stop waits for; after Stop it refuses.
func (s *Sandbox) background(f func()) error {
	s.life.Lock()
	defer s.life.Unlock()
	if s.stopped {
		return errStopped
	}
	s.work.Go(f)
	return nil
}

// Stop ends what Start began, and launches that are on their way are waited
// for. Machines run on; other nodes serve them. It may be called twice, and without Start.
func (s *Sandbox) Stop(ctx context.Context) error {
	s.life.Lock()
	s.stopped = true
	if s.stop != nil {
		s.stop()
	}
	s.life.Unlock()
	s.sockets.closeAll()
	done := make(chan struct{})
	go func() { s.work.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop the sandbox clouds: %w", ctx.Err())
	}
}

// StopAll ends every machine of every sandbox cloud of the folder for good,
// whoever launched it, and returns how many there were.
func (s *Sandbox) StopAll(ctx context.Context) (int, error) {
	type target struct{ dir, name string }
	var targets []target
	for _, c := range s.clouds {
		list, err := c.machines("")
		if err != nil {
			return 0, err
		}
		for _, r := range list {
			targets = append(targets, target{c.dir, r.Name})
		}
	}
	errs := make([]error, len(targets))
	slots := make(chan struct{}, 8)
	var wg sync.WaitGroup
	for i, t := range targets {
		slots <- struct{}{}
		wg.Go(func() {
			errs[i] = s.destroy(ctx, t.dir, t.name)
			<-slots
		})
	}
	wg.Wait()
	return len(targets), errors.Join(errs...)
}
