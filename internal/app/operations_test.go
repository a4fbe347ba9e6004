package app

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oasdiff/yaml"
	"github.com/prometheus/client_golang/prometheus"
)

// exposed are the metrics of a node, with their labels; those of Go's own
// collectors are not used by what stands in docs/operations.
func exposed() map[string][]string {
	a := &App{metrics: newMetrics()}
	names := map[string][]string{"up": {"job", "instance"}} // Prometheus' own
	form := regexp.MustCompile(`fqName: "([a-z0-9_]+)".*variableLabels: \{([a-z0-9_,]*)\}`)
	for _, c := range append(a.gauges(), a.metrics.requests, a.metrics.failures, a.metrics.seconds) {
		_, histogram := c.(*prometheus.HistogramVec)
		ch := make(chan *prometheus.Desc, 100)
		c.Describe(ch)
		close(ch)
		for d := range ch {
			m := form.FindStringSubmatch(d.String())
			labels := strings.Split(m[2], ",")
			if !histogram {
				names[m[1]] = labels
				continue
			}
			names[m[1]+"_bucket"], names[m[1]+"_sum"], names[m[1]+"_count"] = append(labels, "le"), labels, labels
		}
	}
	return names
}

var (
	words     = []string{"max", "min", "sum", "count", "rate", "increase", "histogram_quantile", "vector", "or", "by"}
	texts     = regexp.MustCompile(`"[^"]*"`)
	matchers  = regexp.MustCompile(`([a-z_][a-z0-9_]*)\{([^}]*)\}`)
	label     = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)`)
	grouping  = regexp.MustCompile(`\bby\s*\(([^)]*)\)`)
	stretches = regexp.MustCompile(`\[[0-9]+[smhd]\]`)
	word      = regexp.MustCompile(`[a-zA-Z_][a-zA-Z0-9_]*`)
)

// read says what is wrong with an expression, and which metrics and labels it
// names. It knows as much of PromQL as is used here.
func read(expr string, known map[string][]string) (metrics, by []string, err error) {
	if strings.Count(expr, "(") != strings.Count(expr, ")") || strings.Count(expr, `"`)%2 != 0 || strings.Count(expr, "{") != strings.Count(expr, "}") {
		return nil, nil, fmt.Errorf("it is not closed")
	}
	bare := stretches.ReplaceAllString(texts.ReplaceAllString(expr, `""`), "")
	for _, m := range matchers.FindAllStringSubmatch(bare, -1) {
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(known[m[1]], l[1]) {
				return nil, nil, fmt.Errorf("%s has no label %s", m[1], l[1])
			}
		}
	}
	bare = matchers.ReplaceAllString(bare, "$1")
	for _, m := range grouping.FindAllStringSubmatch(bare, -1) {
		for l := range strings.SplitSeq(m[1], ",") {
			by = append(by, strings.TrimSpace(l))
		}
	}
	for _, w := range word.FindAllString(grouping.ReplaceAllString(bare, ""), -1) {
		if slices.Contains(words, w) {
			continue
		}
		if known[w] == nil {
			return nil, nil, fmt.Errorf("a node has no metric %s", w)
		}
		metrics = append(metrics, w)
	}
	for _, l := range by {
		if !slices.ContainsFunc(metrics, func(m string) bool { return slices.Contains(known[m], l) }) {
			return nil, nil, fmt.Errorf("none of its metrics has a label %s", l)
		}
	}
	if len(metrics) == 0 {
		return nil, nil, fmt.Errorf("it names no metric")
	}
	return metrics, by, nil
}

func operations(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "operations", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Each rule can fire: it names metrics and labels that a node has, says how bad
// it is and what to do, and speaks of labels that it has. What the operator must
// not miss has a rule.
func TestAlertRulesNameWhatANodeTells(t *testing.T) {
	t.Parallel()
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	if _, err := yaml.Unmarshal(operations(t, "alerts.yml"), &file, yaml.DecodeOpts{}); err != nil {
		t.Fatal(err)
	}
	known, seen, all := exposed(), map[string]bool{}, ""
	spoken := regexp.MustCompile(`\$labels\.([a-z_]+)`)
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			metrics, by, err := read(r.Expr, known)
			if err != nil {
				t.Errorf("%s: %v", r.Alert, err)
				continue
			}
			if seen[r.Alert] || g.Name == "" || r.Alert == "" || r.For == "" || r.Annotations["summary"] == "" || r.Annotations["action"] == "" ||
				!slices.Contains([]string{"critical", "warning"}, r.Labels["severity"]) {
				t.Errorf("%q lacks something, or is there twice: %+v", r.Alert, r)
			}
			seen[r.Alert] = true
			all += r.Expr + "\n"
			if slices.Equal(metrics, []string{"up"}) {
				by = known["up"]
			}
			for _, m := range spoken.FindAllStringSubmatch(r.Annotations["summary"]+r.Annotations["action"], -1) {
				if !slices.Contains(by, m[1]) {
					t.Errorf("%s speaks of a label %s that its expression does not have", r.Alert, m[1])
				}
			}
		}
	}
	for _, must := range []string{
		`provider_breaker_open{reason="failures"}`, `provider_breaker_open{reason="funds"}`, "provider_catalogue_stale", "provider_balance_low",
		"orphan_machines", "instances_terminating_long", "instances_ambiguous_long", "instances_last_sync_long", "provider_margin_usd", "offers_negative_margin", "jobs_given_up_day",
		"jobs_retrying", "ledger_problems", "ledger_imbalance_usd", "ledger_check_age_seconds", "clearing_problems", "volume_damaged_objects",
		`background_failures_total{loop=~"purge|scrub`, "database_up", "provider_balance_known",
	} {
		if !strings.Contains(all, must) {
			t.Errorf("no rule looks at %s", must)
		}
	}
	loops := map[string]bool{}
	for _, l := range (&App{}).always() {
		loops[l.name] = true
	}
	for _, m := range regexp.MustCompile(`loop=~"([^"]*)"`).FindAllStringSubmatch(all, -1) {
		for name := range strings.SplitSeq(m[1], "|") {
			if !loops[name] && name != "balance at .*" {
				t.Errorf("there is no background work %q", name)
			}
		}
	}
}

// Whatever work always fails, some rule's limit is below what one node can count
// of it.
func TestEveryWorkThatFailsHasARuleThatFires(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`increase\(background_failures_total(?:\{loop=~"([^"]*)"\})?\[([0-9]+)([mh])\]\)\) > ([0-9]+)`)
	rules := form.FindAllStringSubmatch(string(operations(t, "alerts.yml")), -1)
	if len(rules) < 3 {
		t.Fatalf("%d rules look at failures", len(rules))
	}
	for _, l := range append((&App{}).always(), loop{"balance at a", 5 * time.Minute, nil}) {
		fires := slices.ContainsFunc(rules, func(r []string) bool {
			if r[1] != "" && !regexp.MustCompile("^(?:"+r[1]+")$").MatchString(l.name) {
				return false
			}
			window, err := time.ParseDuration(r[2] + r[3])
			limit, tooBig := strconv.Atoi(r[4])
			return err == nil && tooBig == nil && int(window/l.every) > limit
		})
		if !fires {
			t.Errorf("no rule can fire for %q, which is done every %s", l.name, l.every)
		}
	}
}

// The dashboard shows every figure that a node tells, and none that it does not.
func TestDashboardShowsWhatANodeTells(t *testing.T) {
	t.Parallel()
	var board struct {
		UID, Title string
		Panels     []struct {
			Type, Title string
			Targets     []struct{ Expr, LegendFormat string }
			GridPos     struct{ X, Y, W, H int }
		}
	}
	if err := json.Unmarshal(operations(t, "grafana-dashboard.json"), &board); err != nil {
		t.Fatal(err)
	}
	known, shown := exposed(), map[string]bool{"up": true, "http_request_seconds_sum": true, "http_request_seconds_count": true}
	for _, p := range board.Panels {
		if p.Title == "" || p.GridPos.W == 0 || p.GridPos.X+p.GridPos.W > 24 || p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("the panel %q: %+v", p.Title, p)
		}
		for _, target := range p.Targets {
			metrics, by, err := read(target.Expr, known)
			if err != nil {
				t.Errorf("%s: %v", p.Title, err)
			}
			for _, m := range metrics {
				shown[m] = true
			}
			for _, l := range regexp.MustCompile(`\{\{([a-z_]+)\}\}`).FindAllStringSubmatch(target.LegendFormat, -1) {
				if !slices.Contains(by, l[1]) {
					t.Errorf("%s: its legend speaks of %s", p.Title, l[1])
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if !shown[name] {
			t.Errorf("%s is on no panel", name)
		}
	}
	for expr, why := range map[string]string{
		"max(no_such)": "a metric", `max(pods{cloud="a"})`: "a label", "max by (cloud) (pods)": "a group", "max(pods": "a parenthesis", "1 > 2": "no metric",
	} {
		if _, _, err := read(expr, known); err == nil {
			t.Errorf("%q is believed, with %s that is wrong", expr, why)
		}
	}
}
