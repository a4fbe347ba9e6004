package bench_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A row is one bar and what was measured.
type row struct {
	Bar, Beside, Demand, Measured, Spread, CPU, Load string
	Verdict                                          verdict
}

type verdict string

const (
	met    verdict = "met"
	notMet verdict = "**not met**"
	byCPU          = " (by CPU)"
)

// A topic is one table of the report.
type topic struct {
	Title string
	Rows  []row
	Notes []string
}

func verdictOf(holds bool) verdict {
	if holds {
		return met
	}
	return notMet
}

// atMost is a bar on a figure without a peer: sorted values and which share of
// them the bar is on.
func atMost(bar string, sorted []float64, share, limit float64, unit string) row {
	value := quantile(sorted, share)
	return row{
		Bar: bar, Demand: fmt.Sprintf("<= %g %s", limit, unit), Measured: fmt.Sprintf("%.2f %s", value, unit),
		Spread: fmt.Sprintf("%.2f to %.2f", sorted[0], sorted[len(sorted)-1]), Verdict: verdictOf(value <= limit),
	}
}

// tooWide is the spread, as a share of the median, from which on wall time says
// nothing and CPU time decides.
const tooWide = 0.30

// A ratios is the pairs of one bar: wall and CPU time, ours over theirs or
// theirs over ours, as the bar has it. CPU may be empty.
type ratios struct {
	wall, cpu []float64
	limit     float64
	atLeast   bool // the bar is from below
}

func (r ratios) holds(value float64) bool {
	if r.atLeast {
		return value >= r.limit
	}
	return value <= r.limit
}

// row judges by the median, and by the CPU time's where the pairs differ much.
func (r ratios) row(bar, beside string) row {
	slices.Sort(r.wall)
	slices.Sort(r.cpu)
	sign := "<="
	if r.atLeast {
		sign = ">="
	}
	low, mid, high := r.wall[0], quantile(r.wall, 0.5), r.wall[len(r.wall)-1]
	out := row{
		Bar: bar, Beside: beside, Demand: fmt.Sprintf("%s %g x", sign, r.limit), Measured: fmt.Sprintf("%.2f x", mid),
		Spread: fmt.Sprintf("%.2f to %.2f", low, high), Verdict: verdictOf(r.holds(mid)),
	}
	if len(r.cpu) == 0 || quantile(r.cpu, 0.5) == 0 {
		return out
	}
	cpu := quantile(r.cpu, 0.5)
	out.CPU = fmt.Sprintf("%.2f x", cpu)
	if (high-low)/math.Abs(mid) > tooWide {
		out.Verdict = verdictOf(r.holds(cpu)) + byCPU
	}
	return out
}

// write writes the table as markdown, without the columns that are empty.
func (tp topic) write(out *strings.Builder) {
	columns := []struct {
		name string
		of   func(row) string
	}{
		{"Bar", func(r row) string { return r.Bar }},
		{"Beside", func(r row) string { return r.Beside }},
		{"Demand", func(r row) string { return r.Demand }},
		{"Measured", func(r row) string { return r.Measured }},
		{"Spread", func(r row) string { return r.Spread }},
		{"CPU", func(r row) string { return r.CPU }},
		{"Load", func(r row) string { return r.Load }},
		{"Verdict", func(r row) string { return string(r.Verdict) }},
	}
	fmt.Fprintf(out, "\n### %s\n\n", tp.Title)
	head, line := "|", "|"
	for i, c := range columns {
		if !slices.ContainsFunc(tp.Rows, func(r row) bool { return c.of(r) != "" }) {
			columns[i].of = nil
			continue
		}
		head, line = head+" "+c.name+" |", line+"---|"
	}
	if len(tp.Rows) > 0 {
		fmt.Fprintf(out, "%s\n%s\n", head, line)
	}
	for _, r := range tp.Rows {
		out.WriteString("|")
		for _, c := range columns {
			if c.of != nil {
				fmt.Fprintf(out, " %s |", c.of(r))
			}
		}
		out.WriteString("\n")
	}
	if len(tp.Notes) > 0 {
		out.WriteString("\n")
	}
	for _, n := range tp.Notes {
		fmt.Fprintf(out, "- %s\n", n)
	}
}

// under says which load the machine had before the topic began, which is that
// of others.
func (tp topic) under(load string) topic {
	for i := range tp.Rows {
		tp.Rows[i].Load = load
	}
	return tp
}

// publish prints a topic and keeps it for the report.
func publish(t *testing.T, name string, tp topic) {
	t.Helper()
	var text strings.Builder
	tp.write(&text)
	fmt.Print(text.String())
	dir := os.Getenv(outEnv)
	if dir == "" {
		return
	}
	encoded, err := json.Marshal(tp)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".json"), encoded, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestCPUDecidesWhereTheSpreadIsWide(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		in   ratios
		want verdict
	}{
		{"narrow and over", ratios{wall: []float64{1.1, 1.0, 1.2}, cpu: []float64{0.5}, limit: 1.05}, notMet},
		{"narrow and under", ratios{wall: []float64{1.1, 1.0, 1.2}, cpu: []float64{2}, limit: 1.1}, met},
		{"wide", ratios{wall: []float64{1, 2, 3}, cpu: []float64{1, 1, 9}, limit: 1}, met + byCPU},
		{"wide, from below", ratios{wall: []float64{1, 2, 3}, cpu: []float64{0.5, 0.5, 0.7}, limit: 0.6, atLeast: true}, notMet + byCPU},
		{"wide without CPU", ratios{wall: []float64{1, 2, 3}, limit: 1.5, atLeast: true}, met},
	} {
		if got := c.in.row("", "").Verdict; got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
