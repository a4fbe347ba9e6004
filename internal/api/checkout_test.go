package api_test

import (
	"strings"
	"testing"
)

func TestTeamCheckoutAnswersWithAnAddressOnly(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	p := w.move(0)
	a := w.is(w.call(p.token, "POST", "/teams/checkout", `{"name":" Docks ","description":"","member_count":3,"team_id":"x"}`), 200)
	var out map[string]string
	a.json(t, &out)
	if len(out) != 1 || !strings.HasPrefix(out["checkout_url"], "https://pay.example/") {
		t.Errorf("answered %s", a.Body)
	}
	var info struct{ Teams []struct{ ID string } }
	w.is(w.call(p.token, "GET", "/user/info", ""), 200).json(t, &info)
	if len(info.Teams) != 1 {
		t.Errorf("a team that is not paid is listed: %+v", info)
	}
}

func TestTeamCheckoutRefusals(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	p := w.move(0)
	for body, want := range map[string][2]string{
		`{"name":"","member_count":1}`:                                                    {"team_name", "Team name is required"},
		`{"name":"` + strings.Repeat("x", 81) + `","member_count":1}`:                     {"team_name", "The team name must have 1 to 80 characters."},
		`{"name":"x","member_count":0}`:                                                   {"team_member_count", "At least 1 member is required"},
		`{"name":"x","member_count":101}`:                                                 {"team_member_count", "Maximum 100 members allowed"},
		`{"name":"x","member_count":99999999999999999999999}`:                             {"team_member_count", "Maximum 100 members allowed"},
		`{"name":"x","member_count":1,"description":"` + strings.Repeat("x", 1001) + `"}`: {"team_description", "The description must have at most 1000 characters."},
		`{"name":"x","member_count":1.5}`:                                                 {"invalid_input", ""},
		`{"name":"x","member_count":"many"}`:                                              {"invalid_input", ""},
		`{"name":"x","member_count":null}`:                                                {"invalid_input", ""},
		`{"name":"x"}`:                                                                    {"invalid_input", ""},
		`{"member_count":1}`:                                                              {"invalid_input", ""},
		`{"name":5,"member_count":1}`:                                                     {"invalid_input", ""},
	} {
		got := w.problem(w.call(p.token, "POST", "/teams/checkout", body), 422, want[0])
		if want[1] != "" && got.Detail != want[1] {
			t.Errorf("%s: %q, want %q", body, got.Detail, want[1])
		}
	}
	w.problem(w.call("", "POST", "/teams/checkout", `{"name":"x","member_count":1}`), 401, "no_session")
	var n int
	w.must(w.pool.QueryRow(t.Context(), `select count(*) from team where state = 'inactive'`).Scan(&n))
	if n != 0 {
		t.Errorf("%d teams were reserved by refused requests", n)
	}
}

func TestTeamCheckoutIsRepeatable(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	p := w.move(0)
	const body = `{"name":"Docks","member_count":2}`
	first := w.is(w.call(p.token, "POST", "/teams/checkout", body, "Idempotency-Key", "k"), 200).Body.String()
	if again := w.is(w.call(p.token, "POST", "/teams/checkout", body, "Idempotency-Key", "k"), 200).Body.String(); again != first {
		t.Errorf("repeated: %s, first: %s", again, first)
	}
	w.problem(w.call(p.token, "POST", "/teams/checkout", `{"name":"Docks","member_count":3}`, "Idempotency-Key", "k"), 422, "idempotency_mismatch")
	if other := w.is(w.call(p.token, "POST", "/teams/checkout", body), 200).Body.String(); other == first {
		t.Error("without a key two requests got one checkout")
	}
}
