package app

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// What the operator's view shows is what a scrape tells, each figure once.
func TestOperatorsFiguresAreMetrics(t *testing.T) {
	t.Parallel()
	q := newQuay(t, "OPERATORS", "Ada@Example.com, bob@example.com")
	q.exec(`insert into orphan (provider, ref, name, first_seen_wall_at) values ('sandbox', '1', 'hp-x', $1), ('elsewhere', '2', 'hp-y', $1)`, q.clock.Wall())
	q.exec(`insert into river_job (state, attempt, max_attempts, finalized_at, scheduled_at, args, kind)
		values ('discarded', 5, 5, $1, $1, '{}', 'mail')`, q.clock.Wall().Add(-time.Hour))
	q.must(q.wallet.CheckNight(t.Context(), q.clock.Now()))
	r := prometheus.NewRegistry()
	r.MustRegister(q.gauges()...)
	found, err := r.Gather()
	q.must(err)
	got := map[string]float64{}
	for _, f := range found {
		for _, m := range f.GetMetric() {
			got[f.GetName()] += m.GetGauge().GetValue()
		}
	}
	for name, want := range map[string]float64{
		"orphan_machines": 2, "jobs_given_up": 1, "jobs_given_up_day": 1, "jobs_retrying": 0, "provider_catalogue_stale": 0, "reaper_disarmed": 0,
		"ledger_problems": 0, "instances_terminating_long": 0,
	} {
		if have, ok := got[name]; !ok || have != want {
			t.Errorf("%s is %v (told: %v), want %v", name, have, ok, want)
		}
	}
	o, err := q.operator.Overview(t.Context())
	q.must(err)
	if got["provider_health"] != float64(len(o.Providers)) {
		t.Errorf("%v clouds are told, %d shown", got["provider_health"], len(o.Providers))
	}
	if got["database_up"] != 1 {
		t.Error("the database is told to be down")
	}
	if _, err := Load(nil, map[string]string{"OPERATORS": "ada@example.com, nobody", "STATE_DIR": t.TempDir()}); err == nil {
		t.Error("a word that is no address is taken")
	}
}

// Without a database a scrape tells that, and what this node has counted: the
// alarms that depend on it go on.
func TestAScrapeWithoutADatabaseTellsWhatThereIs(t *testing.T) {
	t.Parallel()
	q := newQuay(t)
	q.metrics.requests.WithLabelValues("GET", "pods", "500").Inc()
	handler := q.metricsHandler()
	q.pool.Close()
	out := httptest.NewRecorder()
	handler.ServeHTTP(out, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	if out.Code != http.StatusOK {
		t.Fatalf("status %d", out.Code)
	}
	for _, line := range []string{"\ndatabase_up 0\n", `http_requests_total{area="pods",code="500",method="GET"} 1`} {
		if !strings.Contains(out.Body.String(), line) {
			t.Errorf("%q is missing", line)
		}
	}
}
