package app

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// What an operator acknowledged alerts nobody any more; what was not still does.
func TestAcknowledgedDifferencesAlertNobody(t *testing.T) {
	t.Parallel()
	q := newQuay(t)
	for _, subject := range []string{"pi_known", "pi_unknown"} {
		q.exec(`insert into clearing_problem (processor, subject, payment_id, kind, detail, off_usd_micro, found_at)
			values ('test', $1, $1, 'foreign', 'a payment that is none of ours', 7000000, $2)`, subject, q.clock.Now())
	}
	want := func(when string, want map[string]float64) {
		t.Helper()
		r := prometheus.NewRegistry()
		r.MustRegister(newLedgerGauges(q.App))
		found, err := r.Gather()
		q.must(err)
		got := map[string]float64{}
		for _, f := range found {
			got[f.GetName()] = f.GetMetric()[0].GetGauge().GetValue()
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	want("at first", map[string]float64{"clearing_difference_usd": 14, "clearing_problems": 2, "clearing_problems_acknowledged": 0})
	q.must(q.payments.Acknowledge(t.Context(), "pi_known", "the shop's own account", "ada"))
	want("once one is known", map[string]float64{"clearing_difference_usd": 7, "clearing_problems": 1, "clearing_problems_acknowledged": 1})
}
