package app

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/operator"
	"homeport.dev/homeport/internal/pod"
)

// A figure is one gauge of the operator's view.
type figure struct{ desc *prometheus.Desc }

func newFigure(name, help string, labels ...string) figure {
	return figure{prometheus.NewDesc(name, help, labels, nil)}
}

// is sends a value of the gauge.
func (f figure) is(c chan<- prometheus.Metric, value float64, labels ...string) {
	c <- prometheus.MustNewConstMetric(f.desc, prometheus.GaugeValue, value, labels...)
}

// The figures of the operator's view that no other collector has. Those of money
// and time are of 7 days, today and the 6 before, or of today, in UTC.
var (
	figHealth      = newFigure("provider_health", "1 for the word that tells how a cloud does.", "provider", "health")
	figStale       = newFigure("provider_catalogue_stale", "1 while a cloud that sells has no good list of offers, so that they are hidden.", "provider")
	figProbe       = newFigure("provider_probe_seconds", "Time until a cloud that is off sale is tried again.", "provider")
	figBalance     = newFigure("provider_balance_usd", "What a cloud said last of our money there.", "provider")
	figBalanceAge  = newFigure("provider_balance_age_seconds", "Time since it said so.", "provider")
	figBalanceTold = newFigure("provider_balance_known", "1 while a cloud whose API says what is left of our money has said so within an hour.", "provider")
	figBalanceLow  = newFigure("provider_balance_low", "1 while the balance pays for less than a day of what runs there.", "provider")
	figBurn        = newFigure("provider_burn_usd_per_hour", "What our machines at a cloud cost us.", "provider")
	figInstances   = newFigure("instances", "Open instances.", "provider", "state")
	figTermLong    = newFigure("instances_terminating_long", "Instances that are ending for more than 15 minutes.", "provider")
	figAmbLong     = newFigure("instances_ambiguous_long", "Instances of which it is not known for more than 5 minutes whether there is a machine.", "provider")
	figSyncLong    = newFigure("instances_last_sync_long", "Instances whose pod is in its last sync for more than 24 hours.", "provider")
	figWithoutPod  = newFigure("instances_without_pod", "Machines that serve no pod any more.", "provider")
	figOrphans     = newFigure("orphan_machines", "Machines with our mark that no open instance owns.", "provider")
	figDisarmed    = newFigure("reaper_disarmed", "1 while the database is a restored one, and no orphan is ended.")
	figPaid        = newFigure("provider_paid_usd", "What users paid for pods, after refunds.", "provider", "window")
	figUpstream    = newFigure("provider_upstream_usd", "What machines cost us.", "provider", "window")
	figMargin      = newFigure("provider_margin_usd", "What users paid less what machines cost.", "provider", "window")
	figPaidTime    = newFigure("provider_paid_seconds", "Metered time of pods.", "provider", "window")
	figMachineTime = newFigure("provider_machine_seconds", "Time that there were machines.", "provider", "window")
	figLosing      = newFigure("offers_negative_margin", "Things that are sold at which we lost money today and in the 6 days before.", "provider")
	figRetrying    = newFigure("jobs_retrying", "Jobs that failed and will be tried again.", "kind")
	figGivenUp     = newFigure("jobs_given_up", "Jobs that were given up in the last 7 days.", "kind")
	figGivenUpDay  = newFigure("jobs_given_up_day", "Jobs that were given up in the last 24 hours.", "kind")
	figCheckAge    = newFigure("ledger_check_age_seconds", "Time since the last nightly check of the books.")
	figCheckRows   = newFigure("ledger_checked_rows", "Rows of the books that the last nightly check recomputed.", "table")
)

// operatorGauges read the operator's view at each scrape: the page and the alarms
// are told the same.
type operatorGauges struct{ app *App }

func newOperatorGauges(a *App) operatorGauges { return operatorGauges{a} }

// Describe names the gauges.
func (g operatorGauges) Describe(c chan<- *prometheus.Desc) {
	for _, f := range []figure{
		figHealth, figStale, figProbe, figBalance, figBalanceAge, figBalanceTold, figBalanceLow, figBurn, figInstances, figTermLong, figAmbLong, figSyncLong, figWithoutPod,
		figOrphans, figDisarmed, figPaid, figUpstream, figMargin, figPaidTime, figMachineTime, figLosing, figRetrying, figGivenUp, figGivenUpDay,
		figCheckAge, figCheckRows,
	} {
		c <- f.desc
	}
}

// Collect reads them.
func (g operatorGauges) Collect(c chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(g.app.base, 5*time.Second)
	o, err := g.app.operator.Overview(ctx)
	cancel()
	if err != nil {
		c <- prometheus.NewInvalidMetric(figHealth.desc, err)
	} else {
		g.collectOverview(c, o)
	}
	ctx, cancel = context.WithTimeout(g.app.base, 5*time.Second)
	defer cancel()
	m, err := g.app.operator.Margins(ctx, 7)
	if err != nil {
		c <- prometheus.NewInvalidMetric(figMargin.desc, err)
		return
	}
	collectMargins(c, m)
}

func (g operatorGauges) collectOverview(c chan<- prometheus.Metric, o *operator.Overview) {
	for i := range o.Providers {
		collectProvider(c, &o.Providers[i], o.AsOf)
	}
	figDisarmed.is(c, one(o.Restored != nil))
	for _, k := range o.Jobs.Kinds {
		figRetrying.is(c, float64(k.Retrying), k.Kind)
		figGivenUp.is(c, float64(k.GivenUp), k.Kind)
		figGivenUpDay.is(c, float64(k.GivenUpDay), k.Kind)
	}
	if o.Check == nil {
		return
	}
	figCheckAge.is(c, o.CheckAge.Seconds())
	for table, n := range map[string]int64{"wallet": o.Check.Wallets, "segment": o.Check.Segments, "transfer": o.Check.Transfers} {
		figCheckRows.is(c, float64(n), table)
	}
}

func collectProvider(c chan<- prometheus.Metric, p *operator.Provider, now time.Time) {
	figHealth.is(c, 1, p.Name, string(p.Health))
	figStale.is(c, one(p.Stale(now)), p.Name)
	if p.Seen.ProbeAt != nil {
		figProbe.is(c, max(0, p.Seen.ProbeAt.Sub(now).Seconds()), p.Name)
	}
	if b := p.Balance; b != nil && b.Amount != nil {
		figBalance.is(c, dollars(*b.Amount), p.Name)
		figBalanceAge.is(c, now.Sub(*b.ReadAt).Seconds(), p.Name)
		figBalanceLow.is(c, one(p.Low), p.Name)
	}
	if p.Tells {
		known := p.Balance != nil && p.Balance.ReadAt != nil && now.Sub(*p.Balance.ReadAt) < time.Hour
		figBalanceTold.is(c, one(known), p.Name)
	}
	f := p.Fleet
	figBurn.is(c, dollars(money.USD(f.Burn)), p.Name)
	for state, n := range map[pod.InstanceState]int{
		pod.Intent: f.Intent, pod.Ambiguous: f.Ambiguous, pod.Running: f.Running, pod.Terminating: f.Terminating,
	} {
		figInstances.is(c, float64(n), p.Name, string(state))
	}
	figTermLong.is(c, float64(f.TerminatingLong), p.Name)
	figAmbLong.is(c, float64(f.AmbiguousLong), p.Name)
	figSyncLong.is(c, float64(f.LastSyncLong), p.Name)
	figWithoutPod.is(c, float64(f.WithoutPod), p.Name)
	figOrphans.is(c, float64(f.Orphans), p.Name)
}

func collectMargins(c chan<- prometheus.Metric, m *operator.Margins) {
	tell := func(provider, window string, of pod.Margin) {
		figPaid.is(c, dollars(of.Paid), provider, window)
		figUpstream.is(c, dollars(of.Upstream), provider, window)
		figMargin.is(c, dollars(of.Left()), provider, window)
		figPaidTime.is(c, float64(of.PaidMicros)/1e6, provider, window)
		figMachineTime.is(c, float64(of.MachineMicros)/1e6, provider, window)
	}
	for _, p := range m.Providers {
		tell(p.Provider, "7d", p.Margin)
		figLosing.is(c, float64(m.Losing[p.Provider]), p.Provider)
	}
	for _, p := range m.ProviderDays {
		if p.Day.Equal(m.To) {
			tell(p.Provider, "today", p.Margin)
		}
	}
}

// dollars is an amount for a metric, which is a float by its nature.
func dollars(u money.USD) float64 { return float64(u) / float64(money.Dollar) }

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
