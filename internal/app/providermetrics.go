package app

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"homeport.dev/homeport/internal/offer"
	"homeport.dev/homeport/internal/pod"
)

// providerGauges read how the clouds do, at each scrape: any node may have
// found it out.
type providerGauges struct {
	app                  *App
	breaker, age, offers *prometheus.Desc
	score, machines      *prometheus.Desc
}

func newProviderGauges(a *App) providerGauges {
	return providerGauges{
		app: a,
		breaker: prometheus.NewDesc("provider_breaker_open",
			"1 while a cloud is off sale, 0.5 while it is on trial, 0 while it works.", []string{"provider", "reason"}, nil),
		age:    prometheus.NewDesc("provider_offers_age_seconds", "Time since a cloud's last good list of offers.", []string{"provider"}, nil),
		offers: prometheus.NewDesc("provider_offers", "Offers in a cloud's last good list.", []string{"provider"}, nil),
		score:  prometheus.NewDesc("provider_score", "How a cloud's machines did in the last 7 days: 100 is without fault.", []string{"provider"}, nil),
		machines: prometheus.NewDesc("provider_machines", "A cloud's machines of the last 7 days, by how they did.",
			[]string{"provider", "outcome"}, nil),
	}
}

// Describe names the gauges.
func (g providerGauges) Describe(c chan<- *prometheus.Desc) {
	c <- g.breaker
	c <- g.age
	c <- g.offers
	c <- g.score
	c <- g.machines
}

// Collect reads them.
func (g providerGauges) Collect(c chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(g.app.base, 2*time.Second)
	defer cancel()
	g.collectScores(ctx, c)
	list, err := g.app.offers.Health(ctx)
	if err != nil {
		c <- prometheus.NewInvalidMetric(g.breaker, err)
		return
	}
	open := map[string]float64{offer.Open: 1, offer.Half: 0.5}
	for _, h := range list {
		for _, reason := range []string{offer.BrokenByFailures, offer.BrokenByFunds} {
			value := 0.0
			if h.Reason == reason {
				value = open[h.State]
			}
			c <- prometheus.MustNewConstMetric(g.breaker, prometheus.GaugeValue, value, h.Adapter, reason)
		}
		if h.ListedAt != nil {
			c <- prometheus.MustNewConstMetric(g.age, prometheus.GaugeValue, g.app.clock.Wall().Sub(*h.ListedAt).Seconds(), h.Adapter)
		}
		c <- prometheus.MustNewConstMetric(g.offers, prometheus.GaugeValue, float64(h.Offers), h.Adapter)
	}
}

// collectScores reads how the clouds' machines did.
func (g providerGauges) collectScores(ctx context.Context, c chan<- prometheus.Metric) {
	list, err := g.app.pods.Scores(ctx)
	if err != nil {
		c <- prometheus.NewInvalidMetric(g.score, err)
		return
	}
	for _, s := range list {
		c <- prometheus.MustNewConstMetric(g.score, prometheus.GaugeValue, float64(s.Points()), s.Provider)
		for outcome, n := range map[pod.Outcome]int{
			pod.OutcomeReady: s.Ready, pod.OutcomeSlow: s.Slow, pod.OutcomeFailed: s.Failed,
			pod.OutcomeBadHost: s.BadHosts, pod.OutcomeLost: s.Lost,
		} {
			c <- prometheus.MustNewConstMetric(g.machines, prometheus.GaugeValue, float64(n), s.Provider, string(outcome))
		}
	}
}
