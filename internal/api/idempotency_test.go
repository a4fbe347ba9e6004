package api_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"homeport.dev/homeport/internal/api"
	"homeport.dev/homeport/internal/money"
)

// The team that a query names is part of the request: one key, used for two
// teams, does not answer the second with what the first got.
func TestOneKeyIsNotForTwoTeams(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	p := w.move(10 * money.Dollar)
	crew := w.found(p)
	volume := w.make(p, "/volumes", p.volumeBody())
	w.is(w.call(p.token, "DELETE", "/volumes/"+volume+"?team_id="+p.team, ""), 204)
	tests := map[string]struct {
		path, body string
		good       int
		status     int // of the answer for another team
		code       string
	}{
		"/wallet/credit/checkout": {"/wallet/credit/checkout", `{"amount":12.34}`, 200, 422, "idempotency_mismatch"},
		"/wallet/card":            {"/wallet/card", "", 200, 422, "idempotency_mismatch"},
		"/volumes/{id}/restore":   {"/volumes/" + volume + "/restore", "", 201, 422, "idempotency_mismatch"},
	}
	for path, tt := range tests {
		first := w.is(w.call(p.token, "POST", tt.path+"?team_id="+p.team, tt.body, "Idempotency-Key", "one"), tt.good).Body.String()
		w.problem(w.call(p.token, "POST", tt.path+"?team_id="+crew, tt.body, "Idempotency-Key", "one"), tt.status, tt.code)
		if again := w.is(w.call(p.token, "POST", tt.path+"?team_id="+p.team, tt.body, "Idempotency-Key", "one"), tt.good).Body.String(); again != first {
			t.Errorf("%s, again: %s, not %s", path, again, first)
		}
	}
	_, described := api.New(api.Deps{})
	want := append(slices.Sorted(maps.Keys(tests)), "/volumes/{id}/versions/{version}/restore") // TestAVersionIsRestored
	slices.Sort(want)
	var all []string
	for path, item := range described.Paths {
		named := map[string]bool{}
		if item.Post != nil {
			for _, param := range item.Post.Parameters {
				named[param.Name] = true
			}
		}
		if named["Idempotency-Key"] && named["team_id"] {
			all = append(all, path)
		}
	}
	slices.Sort(all)
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("the calls with a key that name their team outside the body:\n%s", diff)
	}
}
