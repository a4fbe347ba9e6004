package pod_test

import (
	"testing"
	"time"

	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pod"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/team"
)

func TestScorePoints(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		score pod.Score
		want  int
	}{
		"nothing known":    {pod.Score{}, 100},
		"all good":         {pod.Score{Ready: 50}, 100},
		"one failed":       {pod.Score{Failed: 1}, 66},
		"one of a hundred": {pod.Score{Ready: 99, Lost: 1}, 99},
		"half are slow":    {pod.Score{Ready: 10, Slow: 10}, 77},
		"only bad hosts":   {pod.Score{BadHosts: 98}, 2},
	} {
		if got := tt.score.Points(); got != tt.want {
			t.Errorf("%s: %d points, want %d", name, got, tt.want)
		}
	}
}

// score is that of one cloud.
func (h *harbour) score(name string) pod.Score {
	h.t.Helper()
	list, err := h.Scores(h.t.Context())
	h.must(err)
	for _, s := range list {
		if s.Provider == name {
			return s
		}
	}
	return pod.Score{Provider: name}
}

// What becomes of a machine is counted once, for seven days: the last word of
// each machine, and none of what its user or the market decided.
func TestOutcomesOfMachinesAreCounted(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, hearing)
	scope := h.team(team.Pro, 100*money.Dollar)
	p, a := h.running(scope)
	if got := h.score("a"); got != (pod.Score{Provider: "a", Ready: 1}) {
		t.Errorf("after one good start: %+v", got)
	}
	a.live(time.Minute)
	h.a.vanish(a.machine.Name)
	h.pass(3 * time.Minute)
	h.is(scope, p, pod.Deleted)
	h.a.script(play{failed: true})
	q := h.rent(scope)
	h.pass(10 * time.Second)
	if q = h.is(scope, q, pod.Starting); q.Provider != "borealis" {
		t.Errorf("it starts at %s", q.Provider)
	}
	h.pass(11 * time.Minute) // later than a cloud may be that says nothing
	slow := h.boot(h.b.one())
	slow.mount()
	h.work()
	h.is(scope, q, pod.Ready)
	r := h.rent(scope)
	h.work()
	h.must(h.Delete(t.Context(), scope, r.ID)) // its user does not want it
	h.work()
	h.a.script(play{err: provider.ErrNoCapacity})
	h.rent(scope)
	h.work()
	if got := h.score("a"); got != (pod.Score{Provider: "a", Lost: 1, Failed: 1}) {
		t.Errorf("a lost one machine and failed to start one: %+v", got)
	}
	if got := h.score("b"); got != (pod.Score{Provider: "b", Slow: 1}) {
		t.Errorf("b was slow: %+v", got)
	}
	h.advance(7 * 24 * time.Hour)
	if got := h.score("a"); got != (pod.Score{Provider: "a"}) {
		t.Errorf("a week later: %+v", got)
	}
}

// Of two equal offers at one price the better cloud's is taken, although the
// other one costs us less; a lower price for the user always goes first.
func TestBetterCloudIsTakenAtOnePrice(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		price money.Rate
		want  string
	}{
		"the same price": {1_999_999, "corona"}, // both are 2.60 to users
		"a lower price":  {1_900_000, "borealis"},
	} {
		h := newHarbour(t)
		h.b.offers = append(h.b.offers, h100("borealis", "b-2", tt.price))
		h.b.offers[0].Country = "CA"
		h.a.offers = append(h.a.offers, h100("corona", "c-1", 2_000_000))
		scope := h.team(team.Pro, 100*money.Dollar)
		h.must(h.offers.Refresh(t.Context()))
		_, err := h.pool.Exec(t.Context(), `
			insert into pod (id, team_id, created_by, volume_id, volume_epoch, ssh_key_id, status, status_reason, status_detail, progress,
			  offer, adapter, provider, country, gpu_type, gpu_count, rate_usd_micro_per_hour, max_rate_usd_micro_per_hour,
			  list_rate_usd_micro_per_hour, ssh_port, ssh_host, host_key_sealed, host_key_fingerprint, probe_key_sealed, probe_key_line,
			  attempts, created_at, ended_at, status_wall_at, progress_wall_at, ended_by_user_early)
			select gen_random_uuid(), $1, gen_random_uuid(), v.id, 1, gen_random_uuid(), 'deleted', '', '', 0, '{}', 'b', '', '', '', 1, 1, 1, 1,
			  1, '', '', '', '', '', 1, $2, $2, $2, $2, false from volume v where v.id = $3`,
			scope.TeamID(), h.clock.Wall(), h.ask(scope).VolumeID)
		h.must(err)
		_, err = h.pool.Exec(t.Context(), `
			insert into instance (id, pod_id, attempt, name, provider, offer, state, node_id, token_hash, ref, host, ssh_port, reason,
			  created_wall_at, state_wall_at, tries, outcome, outcome_wall_at)
			select gen_random_uuid(), id, 9, 'old', 'b', '{}', 'gone', gen_random_uuid(), 'x', '', '', 1, '', $1, $1, 0, 'bad_host', $1 from pod`,
			h.clock.Wall())
		h.must(err)
		h.a.script(play{err: provider.ErrNoCapacity})
		p := h.rent(scope)
		h.work()
		if p = h.is(scope, p, pod.Starting); p.Provider != tt.want {
			t.Errorf("%s: it starts at %s, want %s", name, p.Provider, tt.want)
		}
	}
}
