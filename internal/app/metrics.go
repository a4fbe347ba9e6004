package app

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/payment"
)

// metrics are what a node counts; they are served on their own listener.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	failures *prometheus.CounterVec
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "http_requests_total", Help: "Requests answered.",
		}, []string{"method", "area", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "http_request_seconds", Help: "Time to answer a request.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"method", "area"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "background_failures_total", Help: "Passes of background work that failed.",
		}, []string{"loop"}),
	}
	m.registry.MustRegister(m.requests, m.seconds, m.failures, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// databaseGauge asks the database for a sign of life at each scrape: all other
// gauges are missing from a scrape in which it gives none.
type databaseGauge struct {
	app  *App
	desc *prometheus.Desc
}

// Describe names the gauge.
func (g databaseGauge) Describe(c chan<- *prometheus.Desc) { c <- g.desc }

// Collect asks.
func (g databaseGauge) Collect(c chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(g.app.base, 2*time.Second)
	defer cancel()
	c <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, one(g.app.pool.Ping(ctx) == nil))
}

// podGauge reads the live pods at each scrape.
type podGauge struct {
	app  *App
	desc *prometheus.Desc
}

// Describe names the gauge.
func (g podGauge) Describe(c chan<- *prometheus.Desc) { c <- g.desc }

// Collect counts pods by status.
func (g podGauge) Collect(c chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(g.app.base, 2*time.Second)
	defer cancel()
	counts, err := g.app.pods.CountByStatus(ctx)
	if err != nil {
		c <- prometheus.NewInvalidMetric(g.desc, err)
		return
	}
	for status, n := range counts {
		c <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, float64(n), string(status))
	}
}

// ledgerGauges read what the last nightly look at the books found: any node
// may have made it.
type ledgerGauges struct {
	app                 *App
	imbalance, problems *prometheus.Desc
	clearing, differing *prometheus.Desc
	acknowledged        *prometheus.Desc
}

func newLedgerGauges(a *App) ledgerGauges {
	return ledgerGauges{
		app: a,
		imbalance: prometheus.NewDesc("ledger_imbalance_usd",
			"Money that is not where the transfers and segments say, at the last nightly check.", nil, nil),
		problems: prometheus.NewDesc("ledger_problems", "Rows of the books that were wrong at the last nightly check.", nil, nil),
		clearing: prometheus.NewDesc("clearing_difference_usd",
			"Money about which the payment processor's book and the clearing account differ, but for what was acknowledged.", nil, nil),
		differing: prometheus.NewDesc("clearing_problems",
			"Payments, refunds and lines about which the two differ, but for those that were acknowledged.", nil, nil),
		acknowledged: prometheus.NewDesc("clearing_problems_acknowledged",
			"Payments, refunds and lines about which the two differ, and an operator knows why.", nil, nil),
	}
}

// Describe names the gauges.
func (g ledgerGauges) Describe(c chan<- *prometheus.Desc) {
	c <- g.imbalance
	c <- g.problems
	c <- g.clearing
	c <- g.differing
	c <- g.acknowledged
}

// Collect reads the last check, before the first of which there is nothing to
// tell, and what the clearing differs in.
func (g ledgerGauges) Collect(c chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(g.app.base, 2*time.Second)
	defer cancel()
	if open, err := g.app.payments.ClearingProblems(ctx); err != nil {
		c <- prometheus.NewInvalidMetric(g.clearing, err)
	} else {
		off, places := payment.Reconciliation{Problems: open}.Difference()
		c <- prometheus.MustNewConstMetric(g.clearing, prometheus.GaugeValue, float64(off)/float64(money.Dollar))
		c <- prometheus.MustNewConstMetric(g.differing, prometheus.GaugeValue, float64(places))
		c <- prometheus.MustNewConstMetric(g.acknowledged, prometheus.GaugeValue, float64(len(open)-places))
	}
	last, ok, err := g.app.wallet.LastCheck(ctx)
	if err != nil {
		c <- prometheus.NewInvalidMetric(g.imbalance, err)
		return
	}
	if !ok {
		return
	}
	c <- prometheus.MustNewConstMetric(g.imbalance, prometheus.GaugeValue, float64(last.Imbalance)/float64(money.Dollar))
	c <- prometheus.MustNewConstMetric(g.problems, prometheus.GaugeValue, float64(last.Problems))
}

// volumeGauges read what the object store does not do as it should.
type volumeGauges struct {
	app              *App
	damaged, garbage *prometheus.Desc
}

func newVolumeGauges(a *App) volumeGauges {
	return volumeGauges{
		app:     a,
		damaged: prometheus.NewDesc("volume_damaged_objects", "Objects that the store does not give back as they were written.", nil, nil),
		garbage: prometheus.NewDesc("volume_garbage_bytes", "Bytes of objects that wait to be deleted.", nil, nil),
	}
}

// Describe names the gauges.
func (g volumeGauges) Describe(c chan<- *prometheus.Desc) {
	c <- g.damaged
	c <- g.garbage
}

// Collect counts.
func (g volumeGauges) Collect(c chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(g.app.base, 2*time.Second)
	defer cancel()
	garbage, damaged, err := g.app.volumes.Trouble(ctx)
	if err != nil {
		c <- prometheus.NewInvalidMetric(g.damaged, err)
		return
	}
	c <- prometheus.MustNewConstMetric(g.damaged, prometheus.GaugeValue, float64(damaged))
	c <- prometheus.MustNewConstMetric(g.garbage, prometheus.GaugeValue, float64(garbage))
}

// gauges are read from the database at each scrape.
func (a *App) gauges() []prometheus.Collector {
	return []prometheus.Collector{
		databaseGauge{a, prometheus.NewDesc("database_up", "1 while the database answers this node.", nil, nil)},
		podGauge{a, prometheus.NewDesc("pods", "Live pods.", []string{"status"}, nil)},
		newLedgerGauges(a), newProviderGauges(a), newVolumeGauges(a), newOperatorGauges(a),
	}
}

// metricsHandler serves /metrics and pprof.
func (a *App) metricsHandler() http.Handler {
	a.metrics.registry.MustRegister(a.gauges()...)
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(a.metrics.registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, // what can be read is told
		ErrorLog:      slog.NewLogLogger(a.logger.Handler(), slog.LevelWarn),
	}))
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	return mux
}
