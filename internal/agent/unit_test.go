//go:build linux

package agent

import (
	"errors"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"homeport.dev/homeport/internal/agentapi"
)

func TestRefusalsAreSorted(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		status int
		body   string
		want   error
	}{
		{"fenced", 409, `{"status":409,"code":"fenced"}`, ErrFenced},
		{"quota", 409, `{"status":409,"code":"quota_exceeded"}`, ErrQuota},
		{"parent", 409, `{"status":409,"code":"parent_moved"}`, ErrParent},
		{"unknown token", 401, `{"status":401,"code":"x"}`, ErrRefused},
		{"unknown instance", 404, `{"status":404,"code":"x"}`, ErrRefused},
		{"a gateway's 404", 404, `<html>`, ErrAway},
		{"a gateway's 401", 401, ``, ErrAway},
		{"a failing node", 500, `{"status":500,"code":"internal"}`, ErrAway},
		{"a limit", 429, `{"status":429,"code":"slow_down"}`, ErrAway},
	}
	for _, tt := range tests {
		if err := refusal("/x", tt.status, []byte(tt.body)); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	err := refusal("/x", http.StatusUnprocessableEntity, []byte(`{"status":422,"code":"x"}`))
	if over(err) || errors.Is(err, ErrAway) {
		t.Errorf("a refusal that will not change: %v", err)
	}
}

func TestBackoffGrowsToItsBoundAndStartsAgain(t *testing.T) {
	t.Parallel()
	b := newBackoff(time.Second, 10*time.Second, "x")
	for i := range 100 {
		full := 10 * time.Second
		if i < 4 {
			full = time.Second << i
		}
		if d := b.next(); d < full/2 || d > full {
			t.Errorf("try %d waits %v, of %v", i, d, full)
		}
	}
	b.reset()
	if d := b.next(); d > time.Second {
		t.Errorf("after a reset it waits %v", d)
	}
	x, y := newBackoff(time.Hour, time.Hour, "x"), newBackoff(time.Hour, time.Hour, "y")
	if x.next() == y.next() {
		t.Error("two names wait equally long")
	}
}

func TestSyncIntervalIsBounded(t *testing.T) {
	t.Parallel()
	for cpu, want := range map[time.Duration]time.Duration{
		0: time.Minute, 3 * time.Second: time.Minute, 6 * time.Second: 2 * time.Minute, time.Hour: 10 * time.Minute,
	} {
		if got := syncInterval(cpu); got != want {
			t.Errorf("%v gives %v, want %v", cpu, got, want)
		}
	}
}

func TestStatIsReadWhateverTheNameIs(t *testing.T) {
	t.Parallel()
	for stat, want := range map[string]process{
		"7 (cat) S 3 7 5 0":            {pid: 7, parent: 3, session: 5},
		"7 (a ) S 1 1 1 (b) Z 3 7 5 0": {pid: 7, parent: 3, session: 5, dead: true},
	} {
		if got, ok := parseStat(7, []byte(stat)); !ok || got != want {
			t.Errorf("%q: %+v", stat, got)
		}
	}
	for _, stat := range []string{"", "7 (x", "7 (x) S 1"} {
		if _, ok := parseStat(7, []byte(stat)); ok {
			t.Errorf("%q was read", stat)
		}
	}
}

func TestVictimsAreThePodsOwn(t *testing.T) {
	t.Parallel()
	self := os.Getpid()
	all := []process{
		{pid: self, parent: 1, session: 1},
		{pid: 1000001, parent: self, session: 1000001},
		{pid: 1000002, parent: 1000001, session: 1000001},
		{pid: 1000003, parent: 1000001, session: 1000003},
		{pid: 1000004, parent: 1, session: 1000001},
		{pid: 1000005, parent: self, session: 1000001, dead: true},
		{pid: 1000006, parent: 1, session: 1000006},
	}
	table := newTable(false)
	table.sessions[1000001], table.sessions[1000009] = struct{}{}, struct{}{}
	if got := table.victims(all); !slices.Equal(got, []int{1000001, 1000002, 1000004}) {
		t.Errorf("of the sessions: %v", got)
	}
	if _, kept := table.sessions[1000009]; kept {
		t.Error("an empty session is still held for the pod's")
	}
	if got := newTable(true).victims(all); !slices.Equal(got, []int{1000001, 1000002, 1000003}) {
		t.Errorf("of the descendants: %v", got)
	}
}

func TestPhasesGoForwardOnlyAndNotesAreShort(t *testing.T) {
	t.Parallel()
	s := &status{}
	s.setPhase(agentapi.PhaseDone)
	s.setPhase(agentapi.PhaseServing)
	long := make([]rune, 150)
	for i := range long {
		long[i] = 'ä'
	}
	s.setNote(string(long))
	m := s.message(nil)
	if m.Phase != agentapi.PhaseDone || len(m.Note) != maxNote {
		t.Errorf("phase %s, note of %d bytes", m.Phase, len(m.Note))
	}
}
