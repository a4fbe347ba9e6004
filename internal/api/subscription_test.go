package api_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/team"
)

// What a team pays is an admin's to change, and only where it pays.
func TestSubscriptionRefusals(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	admin, mate, stranger := w.move(0), w.move(0), w.move(0)
	crew := w.found(admin)
	w.join(mate, crew, team.Member)
	const three = `{"member_count":3}`
	path := "/teams/" + crew + "/subscription"
	for _, call := range []struct{ method, path, body string }{
		{"PATCH", path, three}, {"DELETE", path, ""}, {"POST", path + "/resume", ""}, {"POST", "/teams/" + crew + "/billing-portal", ""},
	} {
		w.problem(w.call("", call.method, call.path, call.body), 401, "no_session")
		w.problem(w.call(mate.token, call.method, call.path, call.body), 403, "role")
		w.problem(w.call(stranger.token, call.method, call.path, call.body), 404, "team_not_found")
	}
	for body, detail := range map[string]string{
		`{"member_count":0}`: "At least 1 member is required", `{"member_count":101}`: "Maximum 100 members allowed",
	} {
		w.refused(w.call(admin.token, "PATCH", path, body), 422, "team_member_count", detail)
	}
	w.problem(w.call(admin.token, "PATCH", path, `{}`), 422, "invalid_input")
	w.refused(w.call(admin.token, "PATCH", path, three), 409, "no_subscription", "This team has no subscription.")
	w.refused(w.call(admin.token, "DELETE", path, ""), 409, "no_subscription", "This team has no subscription.")
	w.refused(w.call(admin.token, "POST", path+"/resume", ""), 409, "no_subscription", "This team has no subscription.")
	w.problem(w.call("", "GET", path, ""), 401, "no_session")
	w.problem(w.call(stranger.token, "GET", path, ""), 404, "team_not_found")
	w.refused(w.call(mate.token, "GET", path, ""), 409, "no_subscription", "This team has no subscription.")
	w.refused(w.call(admin.token, "POST", "/teams/"+crew+"/billing-portal", ""), 409, "no_billing_portal",
		"There are no cards or invoices of this team yet.")

	_, err := w.pool.Exec(t.Context(), `insert into subscription (id, processor, team_id, user_id, seat_usd_micro, status, seats, read_at, created_at, updated_at)
		values ('sub_1', 'test', $1, $2, 100000000, 'active', 3, $3, $3, $3)`, crew, id.New(), w.clock.Now())
	w.must(err)
	w.refused(w.call(admin.token, "PATCH", path, `{"member_count":1}`), 409, "seats_taken",
		"2 seats are taken by members and pending invitations. Remove some first.")

	var plan map[string]any
	w.is(w.call(mate.token, "GET", path, ""), 200).json(t, &plan)
	want := map[string]any{"status": "active", "member_count": 3.0, "seats_taken": 2.0, "seat_price": 100.0, "period_end_at": nil, "ends": false}
	if diff := cmp.Diff(want, plan); diff != "" {
		t.Errorf("what a member sees of the subscription:\n%s", diff)
	}
}
