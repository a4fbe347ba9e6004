// Package app puts Homeport together: it reads the settings, opens the
// database, makes every service once, and starts and stops them in order.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"homeport.dev/homeport/internal/auth"
	"homeport.dev/homeport/internal/blob/s3"
	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/fail"
	"homeport.dev/homeport/internal/fault"
	"homeport.dev/homeport/internal/interest"
	"homeport.dev/homeport/internal/mail"
	"homeport.dev/homeport/internal/mail/mailbox"
	"homeport.dev/homeport/internal/masterkey"
	"homeport.dev/homeport/internal/meter"
	"homeport.dev/homeport/internal/notice"
	"homeport.dev/homeport/internal/offer"
	"homeport.dev/homeport/internal/operator"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/payment/stripe"
	"homeport.dev/homeport/internal/payment/testpay"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/pod"
	"homeport.dev/homeport/internal/provider/docker"
	"homeport.dev/homeport/internal/provider/sandbox"
	"homeport.dev/homeport/internal/queue"
	"homeport.dev/homeport/internal/sshkey"
	"homeport.dev/homeport/internal/statement"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/volume"
	"homeport.dev/homeport/internal/wallet"
)

// Version is set when a release is built.
var Version = "dev"

// errCrossOrigin occurs when a page of another origin tries to change something.
var errCrossOrigin = fault.New(fault.Forbidden, "cross_origin", "This call must come from Homeport's own pages.")

// An App is one running node.
type App struct {
	config  Config
	logger  *slog.Logger
	clock   *clock.Clock
	metrics *metrics
	csp     string
	https   bool
	ready   atomic.Bool
	base    context.Context // ends when the node has stopped; for work that no request asks for

	embedded *pg.Embedded
	pool     *pgxpool.Pool
	hub      *pg.Hub
	ring     *masterkey.Ring
	queue    *queue.Queue
	loops    loops

	mailbox    *mailbox.Mailbox
	sender     mail.Sender
	auth       *auth.Service
	teams      *team.Service
	wallet     *wallet.Service
	keys       *sshkey.Service
	volumes    *volume.Service
	offers     *offer.Service
	pods       *pod.Service
	interest   *interest.Service
	meter      *meter.Service
	statements *statement.Service
	notices    *notice.Service
	payments   *payment.Service
	operator   *operator.Service
	testpay    *testpay.Processor
	sandbox    *sandbox.Sandbox
	docker     []*docker.Cloud
	objects    http.Handler
	blobs      func(key string) string // where restic finds the objects of a prefix
	bucket     *s3.Store               // nil: the objects lie in a folder
	probed     bool                    // since this process began
	agents     http.Handler

	servers []*http.Server
}

// gcPercent has garbage collected less often than Go's own 100 would: what lives
// in a node is small beside what its calls throw away. It saves a tenth of the
// CPU for a few tens of megabytes. The operator's GOGC counts more.
const gcPercent = 400

// Run serves until ctx ends, then stops in good order. Logs go to logs, what a
// person is to read to out.
func Run(ctx context.Context, c Config, out, logs io.Writer) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	a, err := open(ctx, c, logs)
	if err != nil {
		return err
	}
	if c.Failpoint != "" {
		if err := fail.Arm(c.Failpoint); err != nil {
			return errors.Join(err, a.close(ctx))
		}
	}
	served, err := a.start(ctx)
	if err != nil {
		return errors.Join(err, a.close(ctx))
	}
	a.greet(ctx, out)
	var died <-chan error
	if a.embedded != nil {
		died = a.embedded.Done()
	}
	select {
	case <-ctx.Done():
		err = nil
	case err = <-served:
		err = fmt.Errorf("serve: %w", err)
	case err = <-died:
		err = fmt.Errorf("the database ended: %w", err)
	}
	return errors.Join(err, a.close(ctx))
}

// open makes everything that does not run by itself: it is also what the
// admin commands stand on.
func open(ctx context.Context, c Config, logs io.Writer) (*App, error) {
	a := &App{config: c, clock: clock.New(), metrics: newMetrics(), base: context.WithoutCancel(ctx)}
	a.loops.app = a
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return nil, err
	}
	a.logger = slog.New(withRequestID{slog.NewJSONHandler(logs, &slog.HandlerOptions{Level: level})})
	a.https = strings.HasPrefix(c.PublicURL, "https:")
	a.csp = contentPolicy(c, inline{})
	if err := os.MkdirAll(c.StateDir, 0o711); err != nil {
		return nil, fmt.Errorf("state folder: %w", err)
	}
	if err := a.openDatabase(ctx); err != nil {
		return nil, errors.Join(err, a.close(ctx))
	}
	if err := a.wire(ctx); err != nil {
		return nil, errors.Join(err, a.close(ctx))
	}
	return a, nil
}

// start begins all background work and serves.
func (a *App) start(ctx context.Context) (<-chan error, error) {
	if err := a.probeAgain(ctx); err != nil {
		return nil, err
	}
	if err := a.hub.Start(ctx); err != nil {
		return nil, err
	}
	if err := a.pods.Prepare(ctx); err != nil {
		return nil, err
	}
	if err := a.queue.Start(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	// The first catalogue is there before anybody asks for it.
	if err := a.offers.Refresh(ctx); err != nil {
		a.logger.ErrorContext(ctx, "the catalogue was not refreshed", "err", err)
	}
	a.sandbox.Start(context.WithoutCancel(ctx))
	a.loops.start(context.WithoutCancel(ctx), append(a.background(), a.dockerLoops()...))
	served := make(chan error, 2)
	root, err := a.root()
	if err != nil {
		return nil, err
	}
	if err := a.listen(a.config.Addr, root, served); err != nil {
		return nil, err
	}
	if a.config.MetricsAddr != "off" {
		if err := a.listen(a.config.MetricsAddr, a.metricsHandler(), served); err != nil {
			return nil, err
		}
	}
	a.ready.Store(true)
	return served, nil
}

// listen serves a handler on an address.
func (a *App) listen(addr string, h http.Handler, served chan<- error) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", addr, err)
	}
	s := &http.Server{
		Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 2 * time.Minute, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(a.logger.Handler(), slog.LevelDebug),
	}
	a.servers = append(a.servers, s)
	go func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			served <- err
		}
	}()
	return nil
}

// closeFor bounds an orderly stop.
const closeFor = 20 * time.Second

// close stops everything in the reverse order of its start. Pods go on.
func (a *App) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeFor)
	defer cancel()
	a.ready.Store(false)
	var errs []error
	if a.pods != nil {
		a.pods.Drain()
	}
	for _, s := range a.servers {
		if err := s.Shutdown(ctx); err != nil {
			errs = append(errs, s.Close())
		}
	}
	a.loops.stop(ctx)
	if a.queue != nil {
		errs = append(errs, a.queue.Stop(ctx))
	}
	if a.sandbox != nil {
		errs = append(errs, a.sandbox.Stop(ctx))
	}
	if a.hub != nil {
		errs = append(errs, a.hub.Stop(ctx))
	}
	if a.ring != nil {
		a.leave(ctx)
	}
	if a.pool != nil {
		a.pool.Close()
	}
	if a.embedded != nil {
		errs = append(errs, a.embedded.Stop(ctx))
	}
	return errors.Join(errs...)
}

// leave tells the other nodes that this one is gone, which they find out anyway.
func (a *App) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := a.ring.Leave(ctx); err != nil {
		a.logger.WarnContext(ctx, "the other nodes were not told of the end", "err", err)
	}
}

// collector is what a person is told of who collects the money.
func (a *App) collector() string {
	switch {
	case a.testpay != nil:
		return "built-in test checkout, no real money"
	case a.config.StripeKey == "":
		return "not set up: set HOMEPORT_STRIPE_SECRET_KEY"
	case stripe.IsLive(a.config.StripeKey):
		return "Stripe, real money"
	}
	return "Stripe, test mode, no real money"
}

// greet tells a person where everything is.
func (a *App) greet(ctx context.Context, out io.Writer) {
	c := a.config
	fmt.Fprintf(out, "\nHomeport is at %s\n", c.PublicURL)
	if a.mailbox != nil && c.doors() {
		fmt.Fprintf(out, "  mails          %s/dev/mailbox\n", c.PublicURL)
	}
	fmt.Fprintf(out, "  payments       %s\n", a.collector())
	if c.doors() {
		fmt.Fprintf(out, "  business time  %s (moved by %s)\n", a.clock.Now().Format(time.RFC3339), a.clock.Offset())
	}
	where := c.clouds()
	if c.sandboxSells() {
		where = append(where, "sandboxes on this machine")
	}
	fmt.Fprintf(out, "  pods           %s, ssh to NAME.%s\n", strings.Join(where, ", "), c.PodHost)
	if err := a.canRent(ctx); err != nil {
		fmt.Fprintf(out, "  NOTE           %s\n", reason(err))
	}
	fmt.Fprintf(out, "  state          %s\n", c.StateDir)
	if c.MetricsAddr != "off" {
		fmt.Fprintf(out, "  metrics        http://%s/metrics\n", c.MetricsAddr)
	}
	fmt.Fprintln(out)
}
